package scheduler

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

var seed = flag.Uint64("seed", 0, "repeat the random run of this seed")

// TestRandomOperations walks the scheduler and its twin through the same random lives of a few queues, and compares
// whatever they say.
func TestRandomOperations(t *testing.T) {
	if *seed != 0 {
		randomLife(t, *seed)
		return
	}
	for range 60 {
		randomLife(t, rand.Uint64())
		if t.Failed() {
			return
		}
	}
}

func randomLife(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 0))
	places, claimCap, shared := 1+random.IntN(12), 1+random.IntN(12), random.IntN(3) > 0
	if random.IntN(3) == 0 {
		places, claimCap = 1+random.IntN(100), 1+random.IntN(100)
	}
	life := &life{
		random: random,
		s:      New(Options{Places: places, ClaimCap: claimCap, Shared: shared}),
		w:      &twin{places: places, claimCap: claimCap, shared: shared},
		now:    time.Unix(1_700_000_000, 0),
		parts:  make(map[string]int),
	}
	for step := range 3000 {
		what := life.step()
		err := life.compare()
		if err == nil {
			err = life.s.check(life.now)
		}
		if err != nil {
			t.Fatalf("-seed %d, step %d, %s: %v", seed, step, what, err)
		}
	}
}

type life struct {
	random *rand.Rand
	s      *Scheduler
	w      *twin
	now    time.Time
	parts  map[string]int // as they were told
	err    error
}

// step does something, and says what.
func (l *life) step() string {
	r, s, w, now := l.random, l.s, l.w, l.now
	name := string(rune('a' + r.IntN(6)))
	switch action := r.IntN(100); {
	case action < 14:
		at := now.Add(time.Duration(r.IntN(8)) * 50 * time.Millisecond)
		s.Due(name, at, now)
		w.dueAt(name, at, now)
		return fmt.Sprintf("due %s in %v", name, at.Sub(now))
	case action < 39:
		g, ok := s.Next(now)
		if wg, wok := w.next(now); g != wg || ok != wok {
			l.err = fmt.Errorf("Next is %v, %v; want %v, %v", g, ok, wg, wok)
		}
		return fmt.Sprintf("next %v %v", g, ok)
	case action < 64:
		c := l.claim(w.find(name))
		s.Claimed(name, c, now)
		w.claimed(name, c, now)
		return fmt.Sprintf("claimed %s %+v", name, c)
	case action < 77:
		n, working := r.IntN(8), 0
		if q := w.find(name); q != nil && r.IntN(2) == 0 {
			working = r.IntN(q.held + 1)
		}
		s.Done(name, n, now)
		s.Working(name, working)
		w.done(name, n, now)
		w.working(name, working)
		l.parts[name] = 0
		return fmt.Sprintf("done %s %d, working %d", name, n, working)
	case action < 79:
		n := r.IntN(8)
		s.Returned(name, n, now)
		w.returned(name, n, now)
		return fmt.Sprintf("returned %s %d", name, n)
	case action < 80:
		s.Reset(name, now)
		w.resetQueue(name, now)
		return "reset " + name
	case action < 83:
		limits := Limits{
			Rate:       []float64{0, 0, 0.5, 3, 10, 1000}[r.IntN(6)],
			Concurrent: []int{0, 0, 1, 5, 4*s.places - 1, 4 * s.places}[r.IntN(6)],
			Weight:     1 + r.IntN(4),
		}
		if limits.Rate > 0 {
			limits.Burst = 1 + r.IntN(6)
		}
		s.SetLimits(name, limits, now)
		w.setLimits(name, limits, now)
		return fmt.Sprintf("limits %s %+v", name, limits)
	case action < 84:
		s.Forget(name)
		w.forget(name, now)
		return "forget " + name
	case action < 86:
		s.Late(name)
		w.late(name)
		return "late " + name
	case action < 87 && r.IntN(20) == 0:
		l.now = now.Add(30 * time.Second)
		return "half a minute"
	case action < 92:
		l.now = now.Add(time.Duration(r.IntN(8)) * time.Millisecond)
		return fmt.Sprintf("tick %v", l.now.Sub(now))
	default:
		return l.sleep()
	}
}

// sleep moves to the instant that NextAt names, when there must be a grant if there is a free place, and the queue that is
// due may have it.
func (l *life) sleep() string {
	at, ok := l.s.NextAt(l.now)
	if !ok {
		return "sleep without end"
	}
	slept := at.Sub(l.now)
	l.now = at
	if again, ok := l.s.NextAt(at); l.s.free() > 0 && !l.s.shared && (!ok || !again.Equal(at)) {
		l.err = fmt.Errorf("at the instant that NextAt has named it names %v later", again.Sub(at))
	}
	return fmt.Sprintf("sleep %v", slept)
}

// claim invents the answer of a store.
func (l *life) claim(q *twinQueue) (c Claim) {
	r := l.random
	if q != nil {
		c.Leased = r.IntN(q.budget + 1)
	}
	switch r.IntN(12) {
	case 0:
		c.Leased += r.IntN(5) // of an earlier claim
	case 1:
		c.Retry = l.now.Add(time.Duration(r.IntN(100)) * time.Millisecond)
	case 2:
		c.Blocked = true
	case 3:
		c.Blocked, c.Retry = true, l.now.Add(time.Duration(r.IntN(100))*time.Millisecond)
	}
	if r.IntN(4) > 0 {
		c.Next = l.now.Add(time.Duration(max(r.IntN(100)-60, -1)) * time.Millisecond)
	}
	return c
}

// compare says in what scheduler and twin differ.
func (l *life) compare() error {
	if l.err != nil {
		return l.err
	}
	at, ok := l.s.NextAt(l.now)
	if wantAt, wantOK := l.w.nextAt(l.now); !at.Equal(wantAt) || ok != wantOK {
		return fmt.Errorf("NextAt is in %v, %v; want in %v, %v", at.Sub(l.now), ok, wantAt.Sub(l.now), wantOK)
	}
	if got, want := l.s.InFlight(), l.w.inFlight(); got != want {
		return fmt.Errorf("InFlight is %d, want %d", got, want)
	}
	if got, want := l.s.Claiming(), l.w.claiming(); got != want {
		return fmt.Errorf("Claiming is %d, want %d", got, want)
	}
	if got, want := len(l.s.queues), len(l.w.list); got != want {
		return fmt.Errorf("%d queues are known, want %d", got, want)
	}
	l.s.Bounds(func(name string, places int) { l.parts[name] = places })
	for name, places := range l.parts {
		if !l.s.shared {
			break
		}
		if q := l.w.find(name); q == nil && places > 0 || q != nil && places != q.bound {
			return fmt.Errorf("of %s %d leases may be worked on, want %+v", name, places, q)
		}
	}
	for _, name := range []string{"a", "f", "unknown"} {
		if got, want := l.s.Full(name), l.w.full(name); got != want {
			return fmt.Errorf("Full(%s) is %v, want %v", name, got, want)
		}
	}
	return nil
}
