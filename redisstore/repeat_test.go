package redisstore

import (
	"testing"
	"time"

	"github.com/dispatchkit/dispatch"
)

// The tasks of a call whose answer was lost are worked off before the call is repeated. They must not come back, and a
// name that is taken by now is taken by this very call.
func TestEnqueueRepeatedAfterItsTasksHaveEnded(t *testing.T) {
	onTwo(t, func(t *testing.T, b backend) {
		s, f := flaky(t, b)
		put(t, s, "first")
		claimed := claim(t, s, alice, 1, 10)
		settle(t, s, dispatch.Succeeded, 0, claimed.Leased...)

		f.plan("enqueue", lostReply, fault{do: func() {
			r := settleRequest(3, dispatch.Succeeded, 0, claim(t, s, alice, 2, 10).Leased...)
			for i := range r.Items {
				r.Items[i].Tombstone = time.Hour
			}
			_, err := s.Settle(t.Context(), r)
			ok(t, err)
		}})
		r := enqueue(t, s, task("a"), namedTask("n"))
		if r.Duplicate[0] || r.Duplicate[1] {
			t.Errorf("got %+v; the call itself has stored both", r)
		}
		counts, err := s.Counts(t.Context(), mail)
		ok(t, err)
		if counts.Ready != 0 || counts.TotalSucceeded != 3 {
			t.Errorf("tasks came back: %+v", counts)
		}
		if r := enqueue(t, s, namedTask("n")); !r.Duplicate[0] {
			t.Error("another call took a name that is taken")
		}
		sound(t, s, mail)
	})
}

// A call that was stuck on its way, while a later one of its lane has run, stores nothing.
func TestEnqueueThatComesTooLate(t *testing.T) {
	onTwo(t, func(t *testing.T, b backend) {
		s, _ := flaky(t, b)
		put(t, s, "a", "b")
		s.lanes.number -= 2
		if _, err := s.Enqueue(t.Context(), mail, []dispatch.Submission{task("late")}, dispatch.EnqueueOptions{}); err == nil {
			t.Error("a call with an old number was answered like a new one")
		}
		if got := ids(claim(t, s, alice, 1, 10).Leased); got != "a b " {
			t.Errorf("claimed %q", got)
		}
	})
}

func TestLanes(t *testing.T) {
	l := newLanes()
	a, first := l.enter()
	b, second := l.enter()
	if a == b || second <= first {
		t.Fatalf("lanes %d and %d, numbers %d and %d", a, b, first, second)
	}
	l.leave(b)
	l.leave(a)
	if again, _ := l.enter(); again != 0 {
		t.Errorf("got lane %d while 0 is free", again)
	}
	if again, _ := l.enter(); again != 1 {
		t.Errorf("got lane %d while 1 is free", again)
	}
}

// A settle that is repeated when somebody else has its task by then was applied all the same.
func TestSettleRepeatedWhenTheTaskIsTaken(t *testing.T) {
	onTwo(t, func(t *testing.T, b backend) {
		s := b.open(t)
		put(t, s, "a")
		first := claim(t, s, alice, 1, 1).Leased[0]
		request := dispatch.SettleRequest{Queue: mail, Worker: alice, Seq: 1, Items: []dispatch.Settlement{
			{ID: "a", Lease: first.Lease, Outcome: dispatch.Retry, Progress: &dispatch.Progress{Attempts: 1}},
		}}
		for range 2 {
			r, err := s.Settle(t.Context(), request)
			ok(t, err)
			if !r.Applied[0] || !r.Moved {
				t.Fatalf("got %+v", r)
			}
			if leased := claim(t, s, bob, 1, 1).Leased; len(leased) != 1 {
				t.Fatalf("bob has %d tasks", len(leased))
			}
		}
	})
}

// Times below zero are over.
func TestSettleOfTheDistantPast(t *testing.T) {
	onTwo(t, func(t *testing.T, b backend) {
		s := b.open(t)
		put(t, s, "a")
		l := claim(t, s, alice, 1, 1).Leased[0]
		r, err := s.Settle(t.Context(), dispatch.SettleRequest{Queue: mail, Worker: alice, Seq: 1, Items: []dispatch.Settlement{
			{ID: "a", Lease: l.Lease, Outcome: dispatch.Retry, After: -time.Hour, Tombstone: -time.Hour},
		}})
		ok(t, err)
		if !r.Applied[0] {
			t.Errorf("got %+v", r)
		}
		claim(t, s, bob, 1, 1)
	})
}

// What a script of another version answers is an error.
func TestMalformedClaimReply(t *testing.T) {
	none := []any{}
	of := func(settings any, ids, leases, dues string, records, progresses []any) *reply {
		return replyOf(&script{name: "claim"}, []any{int64(1), int64(-1), int64(-1), "", int64(0), settings, int64(0), int64(0), ids, leases, dues, records, progresses})
	}
	for name, r := range map[string]*reply{
		"settings":      of("1", "", "", "", none, none),
		"due time":      of(none, "a", "1 w 1 1", "soon", []any{"r"}, none),
		"record":        of(none, "a", "1 w 1 1", "1", []any{int64(1)}, none),
		"progress":      of(none, "a b", "1 w 1 1\n2 w 1 1", "1 2", []any{"r", "r"}, []any{"p"}),
		"too few":       of(none, "a", "1 w 1 1", "1", []any{"r", "r"}, none),
		"settings bare": of([]any{"1"}, "", "", "", none, none),
	} {
		if _, err := claimReply(r, mail); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
