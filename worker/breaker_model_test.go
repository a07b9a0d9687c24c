package worker

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// TestBreakerRandomly compares the breaker with a model that is a list of what happened.
func TestBreakerRandomly(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		synctest.Test(t, func(t *testing.T) { compareRandomly(t, r) })
	}
}

func compareRandomly(t *testing.T, r *rand.Rand) {
	after := 1 + r.IntN(4)
	b := breaker{after: after}
	keys := []hostKey{{"http", "a", "80"}, {"http", "b", "80"}}
	verdicts := map[hostKey][]verdict{} // of the exchanges that ended
	type open struct {
		p     pass
		path  string
		probe bool
		age   int // how many responses the host had given when it began
		since time.Time
		turn  time.Duration
	}
	var running []*open
	answers := map[hostKey]int{}
	youngest := map[hostKey]*open{}     // the last probe; it may have ended
	silent := func(k hostKey) (n int) { // exchanges in a row without a response, to the last one
		for i := len(verdicts[k]) - 1; i >= 0 && verdicts[k][i] != answer; i-- {
			if verdicts[k][i] == silence {
				n++
			}
		}
		return n
	}
	begin := func(k hostKey, path string, insist bool) {
		isOpen, probes, taken := silent(k) >= after, 0, false
		for _, o := range running {
			if o.p.key != k || !o.probe || o.age != answers[k] {
				continue
			}
			probes++
			if o == youngest[k] {
				out := time.Since(o.since)
				taken = out < o.turn/2 || out < o.turn && path == o.path
			}
		}
		p, in := b.enter(k, path, insist)
		if shed := in > 0; shed != (isOpen && taken && !insist) {
			t.Fatalf("shed: %v, with %d in a row of %d and %d probes", shed, silent(k), after, probes)
		} else if !shed {
			o := &open{p, path, isOpen && !insist, answers[k], time.Now(), slowProbe << min(probes, 12)}
			if running = append(running, o); o.probe {
				youngest[k] = o
			}
		}
	}
	for range 100 {
		// The microsecond keeps the model from asking in the very instant in which a turn ends.
		time.Sleep(time.Duration(r.IntN(8))*time.Second + time.Microsecond)
		if r.IntN(2) == 0 || len(running) == 0 {
			begin(keys[r.IntN(2)], []string{"/x", "/y"}[r.IntN(2)], r.IntN(10) == 0)
			continue
		}
		i := r.IntN(len(running))
		o, v := running[i], verdict(r.IntN(3))
		if v == answer && r.IntN(2) == 0 {
			v = silence // so that breakers stay open for a while
		}
		running = append(running[:i], running[i+1:]...)
		b.leave(o.p, v)
		verdicts[o.p.key] = append(verdicts[o.p.key], v)
		if v == answer {
			answers[o.p.key]++
		}
	}
	for _, o := range running {
		b.leave(o.p, answer)
	}
	for _, k := range keys {
		b.leave(pass{key: k}, answer)
	}
	if len(b.hosts) != 0 || b.tracked.Load() != 0 {
		t.Fatalf("%d hosts are remembered in the end", len(b.hosts))
	}
}
