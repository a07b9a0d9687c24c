package audit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// epoch is the beginning of made-up histories, in µs.
const epoch = 1_800_000_000_000_000

// parseHistory reads a history of queue q, an event a line. Times are ms since epoch, tokens numbers or "@" and such a time;
// what is in brackets may be left out:
//
//	0 p ask a [at=MS]
//	0 p ack a stored [at=MS]
//	0 w start a ATTEMPT/TOKEN [lease=MS] [worker=NAME]
//	0 w end a ATTEMPT/TOKEN ok
//	0 w outcome a ATTEMPT/TOKEN succeeded
//	0 x outcome a - cancelled [result=uncertain]
//	0 x fault kill w
//	0 x act replay a
func parseHistory(t *testing.T, text string) *History {
	t.Helper()
	h := new(History)
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if len(f) < 5 && (len(f) < 4 || f[2] != "ask") {
			t.Fatalf("line %q", line)
		}
		e := Event{Kind: Kind(f[2]), At: instant(t, f[0]), Who: f[1], Queue: "q", ID: f[3]}
		rest := f[4:]
		switch f[2] {
		case "ask":
		case "ack":
			e.Result, rest = rest[0], rest[1:]
		case "fault":
			e.Fault, e.Target, e.Queue, e.ID = f[3], rest[0], "", ""
			rest = rest[1:]
		case "act":
			e.Kind, e.Fault, e.ID = KindFault, f[3], rest[0]
			rest = rest[1:]
		case "start", "end", "outcome":
			e.Attempt, e.Token = lease1(t, rest[0])
			switch rest = rest[1:]; e.Kind {
			case KindStart:
				e.Lease = 1_000_000
			case KindEnd:
				e.Result, rest = rest[0], rest[1:]
			default:
				e.Outcome, rest = rest[0], rest[1:]
			}
		default:
			t.Fatalf("line %q", line)
		}
		for _, option := range rest {
			name, value, _ := strings.Cut(option, "=")
			switch name {
			case "at":
				e.NotBefore = instant(t, value)
			case "lease":
				e.Lease = instant(t, value) - epoch
			case "result":
				e.Result = value
			case "worker":
				e.Worker = value
			default:
				t.Fatalf("line %q", line)
			}
		}
		if e.ID == "-" {
			e.ID = ""
		}
		if err := e.validate(); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		h.Events = append(h.Events, e)
	}
	return h
}

func instant(t *testing.T, ms string) int64 {
	t.Helper()
	n, err := strconv.ParseFloat(ms, 64)
	if err != nil {
		t.Fatal(err)
	}
	return epoch + int64(n*1000)
}

func lease1(t *testing.T, text string) (attempt int, token int64) {
	t.Helper()
	if text == "-" {
		return 0, 0
	}
	number, rest, _ := strings.Cut(text, "/")
	attempt, err := strconv.Atoi(number)
	if err != nil {
		t.Fatal(err)
	}
	if at, ok := strings.CutPrefix(rest, "@"); ok {
		return attempt, instant(t, at)
	}
	token, err = strconv.ParseInt(rest, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return attempt, token
}

// verdictCase is a history, and what there is to find in it.
type verdictCase struct {
	name    string
	history string
	rules   Rules
	want    string // the verdicts of the findings and how many, in alphabetic order: "forged 1, lost 2"
}

func runCases(t *testing.T, cases []verdictCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := Check(parseHistory(t, c.history), c.rules)
			if got := verdicts(r); got != c.want {
				t.Errorf("found %q, want %q", got, c.want)
				for _, f := range r.Findings {
					t.Log(f)
				}
			}
			if r.OK() != (c.want == "") {
				t.Errorf("OK is %v", r.OK())
			}
		})
	}
}

func verdicts(r Report) string {
	counts := make(map[string]int)
	for _, f := range r.Findings {
		counts[f.Verdict]++
	}
	var out []string
	for v, n := range counts {
		out = append(out, fmt.Sprint(v, " ", n))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// life is an uneventful one: enqueued, tried once without success, and ended.
const life = `
	0 p ask a
	1 p ack a stored
	10 w1 start a 1/10
	20 w1 end a 1/10 fail
	21 w1 outcome a 1/10 retry
	40 w2 start a 2/11
	50 w2 end a 2/11 ok
	51 w2 outcome a 2/11 succeeded
`

// empty is a store that holds nothing.
var empty = &Snap{}

// held is a store that holds the task a.
func held(f Final) *Snap { return &Snap{Finals: map[TaskKey]Final{{"q", "a"}: f}} }
