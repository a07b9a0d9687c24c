package main

import (
	"context"
	"testing"
	"time"
)

func TestPickups(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, c := range []struct {
		name     string
		payloads [][]byte
		fails    bool
	}{
		{"each once", [][]byte{stamped(now.Add(-time.Second)), stamped(now)}, false},
		{"one twice", [][]byte{stamped(now), stamped(now), stamped(now)}, true},
		{"one early", [][]byte{stamped(now), stamped(now.Add(time.Hour))}, true},
		{"another payload", [][]byte{stamped(now), []byte("else")}, true},
		{"one missing", [][]byte{stamped(now)}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPickups(2)
			for _, payload := range c.payloads {
				p.started(payload)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			waits, err := p.histogram(ctx)
			if (err != nil) != c.fails {
				t.Fatalf("error %v", err)
			}
			if err == nil && waits.ms(99) < 1000 {
				t.Errorf("p99 is %v ms of a task that waited a second", waits.ms(99))
			}
		})
	}
}

func TestLatencyEntriesShareOneRun(t *testing.T) {
	t.Parallel()
	runs := 0
	ways := map[string]measureLatency{"latency/late": func(context.Context, *env, int) (*histogram, error) {
		runs++
		return newHistogram(), nil
	}}
	e := &env{round: map[string]any{}}
	for _, name := range []string{"latency/late_p50", "latency/late_p99"} {
		entries := latencyEntries(name, "peer", "", ways)
		if len(entries) != 1 {
			t.Fatalf("%s has %d entries", name, len(entries))
		}
		if _, err := entries[0].run(t.Context(), e, 1); err != nil {
			t.Error(err)
		}
	}
	if runs != 1 {
		t.Errorf("%d runs", runs)
	}
	if got := latencyEntries("latency/load50_p99", "peer", "", ways); got != nil {
		t.Errorf("entries of a figure that the peer has not: %v", got)
	}
}
