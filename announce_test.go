package dispatch

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
)

// announceStore records what it is asked to announce.
type announceStore struct {
	Store // nil: nothing else is called
	got   map[string]Hint
	err   error
}

func (s *announceStore) Announce(_ context.Context, hints []Hint) error {
	s.got = make(map[string]Hint)
	for _, h := range hints {
		if _, twice := s.got[h.Queue]; twice {
			return errors.New("a queue is announced twice")
		}
		s.got[h.Queue] = h
	}
	return s.err
}

// Announcements that gathered are one per queue: the soonest, and changed if one of them was.
func TestGatheredAnnouncements(t *testing.T) {
	store := new(announceStore)
	c := newClient(store, nil, silent, clockwork.NewFakeClock(), false, retention{})
	var batch []announcing
	for _, h := range []Hint{
		{Queue: "a", Wait: time.Second}, {Queue: "b", Wait: time.Minute}, {Queue: "a", Wait: time.Millisecond},
		{Queue: "c", Wait: 5}, {Queue: "a", Wait: time.Hour}, {Queue: "b", Wait: 2 * time.Minute, Changed: true},
		{Queue: "c", Wait: 5, Changed: true}, {Queue: "c", Wait: 6},
	} {
		batch = append(batch, announcing{hint: h, done: make(chan struct{})})
	}
	for _, err := range []error{nil, errTest} {
		store.err = err
		for i := range batch {
			batch[i].done = make(chan struct{})
		}
		c.sendAnnounces("", batch)
		for i, a := range batch {
			select {
			case <-a.done:
			default:
				t.Errorf("with error %v announcement %d is not done", err, i)
			}
		}
		for _, want := range []Hint{{Queue: "a", Wait: time.Millisecond}, {Queue: "b", Wait: time.Minute, Changed: true}, {Queue: "c", Wait: 5, Changed: true}} {
			if got := store.got[want.Queue]; got != want {
				t.Errorf("announced %+v, want %+v", got, want)
			}
		}
	}
}

func TestOverdue(t *testing.T) {
	clock := clockwork.NewFakeClock()
	c := newClient(new(announceStore), nil, silent, clock, false, retention{})
	for _, s := range []struct {
		after, wait time.Duration
		want        bool
	}{
		{0, time.Second, false}, {0, 0, false}, {0, -time.Second + 1, false}, {0, -time.Second, true}, {0, -time.Hour, false},
		{time.Second - 1, -time.Hour, false}, {1, -time.Hour, true}, {time.Hour, -time.Second, true},
	} {
		clock.Advance(s.after)
		if got := c.overdue(s.wait); got != s.want {
			t.Errorf("%v later, overdue(%v) = %v, want %v", s.after, s.wait, got, s.want)
		}
	}
}
