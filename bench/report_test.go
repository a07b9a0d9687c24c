package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func measuredFigure(unit string, results ...*result) measured {
	return measured{figure{name: "a/figure", unit: unit}, results}
}

func resultOf(peer string, samples ...float64) *result {
	return &result{entry: entry{peer: peer, how: "somehow"}, samples: samples}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		samples []float64
		want    float64
	}{{[]float64{7}, 7}, {[]float64{9, 1, 5}, 5}, {[]float64{4, 1, 3, 2}, 2.5}} {
		if got := resultOf("", c.samples...).median(); got != c.want {
			t.Errorf("median of %v is %v, want %v", c.samples, got, c.want)
		}
	}
}

func TestJSON(t *testing.T) {
	skipped := &result{entry: entry{peer: "river"}, err: fmt.Errorf("%w: no PostgreSQL", errSkipped)}
	for _, c := range []struct {
		name string
		m    measured
		want []string
	}{
		{
			"alone", measuredFigure(perSecond, resultOf("", 3, 1, 2)),
			[]string{`{"name":"a/figure","value":2,"unit":"tasks/s","peer":"","peer_value":0,"ratio":0}`},
		},
		{
			"the best entry of a peer counts, and one that is skipped does not",
			measuredFigure(perSecond, resultOf("", 30), resultOf("asynq", 2), resultOf("asynq", 3), resultOf("limit", 60), skipped),
			[]string{
				`{"name":"a/figure","value":30,"unit":"tasks/s","peer":"","peer_value":0,"ratio":0}`,
				`{"name":"a/figure","value":30,"unit":"tasks/s","peer":"asynq","peer_value":3,"ratio":10}`,
				`{"name":"a/figure","value":30,"unit":"tasks/s","peer":"limit","peer_value":60,"ratio":0.5}`,
			},
		},
		{
			"of costs the least is best", measuredFigure(millis, resultOf("", 2), resultOf("", 1), resultOf("asynq", 8), resultOf("asynq", 4)),
			[]string{
				`{"name":"a/figure","value":1,"unit":"ms","peer":"","peer_value":0,"ratio":0}`,
				`{"name":"a/figure","value":1,"unit":"ms","peer":"asynq","peer_value":4,"ratio":0.25}`,
			},
		},
		{"without Dispatch there is nothing to say", measuredFigure(millis, resultOf("asynq", 8)), nil},
		{
			"nothing divided by nothing is 0", measuredFigure(millis, resultOf("", 1), resultOf("asynq", 0)),
			[]string{
				`{"name":"a/figure","value":1,"unit":"ms","peer":"","peer_value":0,"ratio":0}`,
				`{"name":"a/figure","value":1,"unit":"ms","peer":"asynq","peer_value":0,"ratio":0}`,
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			if err := writeJSON(&out, []measured{c.m}); err != nil {
				t.Fatal(err)
			}
			if want := strings.Join(append(c.want, ""), "\n"); out.String() != want {
				t.Errorf("got\n%swant\n%s", out.String(), want)
			}
		})
	}
}

func TestRowSaysWhyAnEntryIsLeftOut(t *testing.T) {
	var out bytes.Buffer
	m := measuredFigure(perSecond, resultOf("", 10), resultOf("asynq", 4), resultOf("asynq", 5))
	m.results = append(m.results, &result{entry: entry{peer: "river"}, err: fmt.Errorf("%w: no PostgreSQL", errSkipped)})
	for _, r := range m.results {
		m.writeRow(&out, r)
	}
	text := out.String()
	if !strings.Contains(text, "skipped: no PostgreSQL") {
		t.Errorf("the reason is missing:\n%s", text)
	}
	if strings.Count(text, "× ") != 1 || !strings.Contains(text, "× 2\t") {
		t.Errorf("one ratio should stand there, beside the best entry:\n%s", text)
	}
}

func TestOnlyFailuresFail(t *testing.T) {
	broken := errors.New("broken")
	m := measuredFigure(perSecond, &result{err: fmt.Errorf("%w: not here", errSkipped)})
	if err := failures([]measured{m}); err != nil {
		t.Errorf("a skipped entry is a failure: %v", err)
	}
	m.results = append(m.results, &result{err: broken})
	if err := failures([]measured{m}); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func TestCatalogue(t *testing.T) {
	names := make(map[string]bool)
	for _, f := range catalogue() {
		if names[f.name] || f.n <= 0 || f.quick <= 0 || f.quick > f.n || len(f.entries) == 0 || f.entries[0].peer != "" {
			t.Errorf("%+v", f)
		}
		names[f.name] = true
	}
	for _, c := range comparisons {
		if !names[c[0]] || !names[c[1]] {
			t.Errorf("there are no such figures: %v", c)
		}
	}
	for _, c := range [][2]string{{"core,nothing", ""}, {"core", "("}, {"core", "^idle/"}} {
		if _, err := figuresOf(c[0], c[1]); err == nil {
			t.Errorf("-suite %s -run %s is taken", c[0], c[1])
		}
	}
	if figures, err := figuresOf("core,http", "^process/http$"); err != nil || len(figures) != 1 {
		t.Errorf("got %d figures, %v", len(figures), err)
	}
}

func TestOncePerRepeat(t *testing.T) {
	e := &env{round: map[string]any{}}
	calls, broken := 0, errors.New("broken")
	ask := func(key string, err error) (int, error) {
		return oncePerRepeat(e, key, func() (int, error) { calls++; return calls, err })
	}
	for range 2 {
		if v, err := ask("a", nil); v != 1 || err != nil {
			t.Errorf("got %d, %v", v, err)
		}
		if _, err := ask("b", broken); !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
	}
	if calls != 2 {
		t.Errorf("measured %d times, want 2", calls)
	}
	e.round = map[string]any{}
	if v, _ := ask("a", nil); v != 3 {
		t.Error("the next repeat should measure again")
	}
}
