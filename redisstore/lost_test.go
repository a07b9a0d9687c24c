package redisstore

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/cluster"
)

// flaky opens a store whose client has faults.
func flaky(t *testing.T, b backend) (*testStore, *faults) {
	f := newFaults()
	return b.open(t, f.hook()), f
}

// onTwo runs a test on the simulated server and on a real one.
func onTwo(t *testing.T, test func(t *testing.T, b backend)) {
	t.Parallel()
	for _, b := range backends(t)[:2] {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			test(t, b)
		})
	}
}

func TestLostAnswerOfEnqueue(t *testing.T) {
	onTwo(t, func(t *testing.T, b backend) {
		s, f := flaky(t, b)
		f.plan("enqueue", fault{}, lostReply, lostReply) // the first finds no queue
		r := enqueue(t, s, task("a"), namedTask("n"))
		if r.Duplicate[0] || r.Duplicate[1] || !r.Moved {
			t.Errorf("got %+v", r)
		}
		f.plan("enqueue", lostReply)
		if r = enqueue(t, s, task("a"), namedTask("m"), namedTask("n")); r.Duplicate[1] || !r.Moved {
			t.Errorf("got %+v", r)
		}
		if got := ids(claim(t, s, alice, 1, 10).Leased); got != "a m n " {
			t.Errorf("claimed %q", got)
		}
		sound(t, s, mail)
	})
}

func TestLostAnswerOfClaim(t *testing.T) {
	onTwo(t, func(t *testing.T, b backend) {
		s, f := flaky(t, b)
		put(t, s, "a", "b", "c")
		f.plan("claim", lostReply)
		_, err := s.Claim(t.Context(), claimRequest(alice, 1, 2))
		if !errors.Is(err, dispatch.ErrUncertain) || !errors.Is(err, io.EOF) {
			t.Fatalf("got %v", err)
		}
		again := claimRequest(alice, 1, 2)
		again.Repeat = true
		f.plan("claim", lostReply)
		_, err = s.Claim(t.Context(), again)
		if !errors.Is(err, dispatch.ErrUncertain) {
			t.Fatalf("got %v", err)
		}
		r, err := s.Claim(t.Context(), again)
		ok(t, err)
		if got := ids(r.Leased); got != "a b " {
			t.Errorf("claimed %q", got)
		}
		c, err := s.Counts(t.Context(), mail)
		if err != nil || c.Running != 2 || c.Ready != 1 {
			t.Errorf("counts %+v, %v", c, err)
		}
		sound(t, s, mail)
	})
}

func TestLostAnswerOfSettle(t *testing.T) {
	onTwo(t, func(t *testing.T, b backend) {
		s, f := flaky(t, b)
		put(t, s, "a", "b", "c", "d")
		leased := claim(t, s, alice, 1, 10).Leased
		for i, outcome := range []dispatch.Outcome{dispatch.Succeeded, dispatch.Retry, dispatch.Dead, dispatch.Released} {
			f.plan("settle", lostReply, lostReply)
			r, err := s.Settle(t.Context(), settleRequest(int64(i+1), outcome, time.Hour, leased[i]))
			if err != nil || !r.Applied[0] {
				t.Errorf("%s: %+v, %v", outcome, r, err)
			}
		}
		c, err := s.Counts(t.Context(), mail)
		want := dispatch.Counts{Scheduled: 2, Succeeded: 1, Dead: 1, TotalSucceeded: 1, TotalDead: 1, TotalRetried: 1}
		if err != nil || c != want {
			t.Errorf("counts %+v, %v", c, err)
		}
		s.advance(time.Hour)
		if names, err := s.Expiring(t.Context(), 10); err != nil || len(names) != 1 {
			t.Errorf("expiring: %v, %v", names, err)
		}
		sound(t, s, mail)
	})
}

// Every other call is repeated by the store itself, and answers as if nothing had been lost. One cannot know: whether
// CreateQueue created.
func TestLostAnswers(t *testing.T) {
	onTwo(t, func(t *testing.T, b backend) {
		s, f := flaky(t, b)
		ctx := t.Context()
		lose := func(names ...string) {
			for _, name := range names {
				f.plan(name, lostReply)
			}
		}
		lose("sadd", "queue_create")
		_, err := s.CreateQueue(ctx, dispatch.Queue{Name: mail})
		ok(t, err)
		lose("hmget")
		q, err := s.Queue(ctx, mail)
		ok(t, err)
		lose("queue_replace")
		q.Weight = 5
		if replaced, err := s.ReplaceQueue(ctx, *q); err != nil || !replaced {
			t.Errorf("replaced: %v, %v", replaced, err)
		}
		lose("queue_state", "queue_state")
		ok(t, s.SetState(ctx, mail, dispatch.QueuePaused))
		ok(t, s.SetState(ctx, mail, dispatch.QueueRunning))

		put(t, s, "a", "b", "c", "d")
		leased := claim(t, s, alice, 1, 2).Leased
		lose("extend")
		moved, err := s.Extend(ctx, mail, []dispatch.Extension{{ID: "a", Lease: leased[0].Lease, For: time.Hour}})
		if err != nil || !moved[0] {
			t.Errorf("extended: %v, %v", moved, err)
		}
		s.advance(lease)
		lose("leases")
		if over, _, err := s.ExpiredLeases(ctx, mail, 10); err != nil || ids(over) != "b " {
			t.Errorf("expired: %q, %v", ids(over), err)
		}
		lose("hscan", "leases")
		if held, _, err := s.HeldLeases(ctx, mail, []cluster.WorkerID{alice}, 0); err != nil || len(held) != 2 {
			t.Errorf("held: %q, %v", ids(held), err)
		}
		lose("zscan", "inspect")
		if page, _, err := s.Tasks(ctx, mail, dispatch.TaskWaiting, ""); err != nil || len(page) != 2 {
			t.Errorf("waiting: %d, %v", len(page), err)
		}
		lose("announce", "hints")
		ok(t, s.Announce(ctx, []dispatch.Hint{{Queue: mail}}))
		if hints, err := s.Hints(ctx, 0); err != nil || len(hints) != 1 {
			t.Errorf("hints: %v, %v", hints, err)
		}
		lose("rest", "look", "announce")
		if busy, err := s.Rest(ctx, []dispatch.Hint{{Queue: mail, Wait: -1}}); err != nil || len(busy) != 1 {
			t.Errorf("busy: %v, %v", busy, err)
		}
		lose("counts")
		if c, err := s.Counts(ctx, mail); err != nil || c.Ready != 2 {
			t.Errorf("counts: %+v, %v", c, err)
		}

		settle(t, s, dispatch.Dead, time.Minute, leased[0])
		s.advance(time.Minute)
		lose("hints", "cleanup", "rest", "cleanup")
		if names, err := s.Expiring(ctx, 10); err != nil || len(names) != 1 {
			t.Errorf("expiring: %v, %v", names, err)
		}
		if more, err := s.Cleanup(ctx, mail, 10); err != nil || more {
			t.Errorf("cleanup: %v, %v", more, err)
		}
		sound(t, s, mail)
		lose("purge", "zscan", "purge_slice")
		ok(t, s.PurgeQueue(ctx, mail, time.Hour))
		put(t, s, "e")
		lose("queues", "sscan")
		if names, _, err := s.Queues(ctx, 0); err != nil || len(names) != 1 {
			t.Errorf("queues: %v, %v", names, err)
		}
		lose("delete")
		if deleted, err := s.DeleteTasks(ctx, mail, []dispatch.TaskID{"e"}, dispatch.DeleteOptions{}); err != nil || !slices.Equal(deleted, []bool{true}) {
			t.Errorf("deleted: %v, %v", deleted, err)
		}
		if c, err := s.Counts(ctx, mail); err != nil || c.Ready != 0 {
			t.Errorf("counts: %+v, %v", c, err)
		}
		sound(t, s, mail)
		lose("hmget", "unlink")
		ok(t, s.DeleteQueue(ctx, mail))
	})
}

// A replay under new IDs is repeated by the store; one that keeps the IDs is not, because a task may be dead again by then.
func TestLostAnswerOfReplay(t *testing.T) {
	onTwo(t, func(t *testing.T, b backend) {
		s, f := flaky(t, b)
		put(t, s, "a", "b")
		settle(t, s, dispatch.Dead, time.Hour, claim(t, s, alice, 1, 2).Leased...)
		f.plan("replay", lostReply, lostReply)
		r, err := s.ReplayTasks(t.Context(), mail, []dispatch.Replay{{ID: "a", NewID: "x"}, {ID: "none", NewID: "y"}})
		if err != nil || !slices.Equal(r.Replayed, []bool{true, false}) || !r.Moved {
			t.Errorf("got %+v, %v", r, err)
		}
		f.plan("replay", lostReply)
		r, err = s.ReplayTasks(t.Context(), mail, []dispatch.Replay{{ID: "b"}})
		if !errors.Is(err, dispatch.ErrUncertain) || len(r.Replayed) != 0 {
			t.Errorf("got %+v, %v", r, err)
		}
		if got := ids(claim(t, s, alice, 2, 10).Leased); got != "b x " {
			t.Errorf("claimed %q", got)
		}
		sound(t, s, mail)
	})
}

// A purge whose first answer was lost removes nothing that came after it.
func TestPurgeBeginsOnce(t *testing.T) {
	onTwo(t, func(t *testing.T, b backend) {
		s, f := flaky(t, b)
		put(t, s, "old")
		f.plan("purge", lostReply, fault{do: func() { put(t, s, "new") }})
		ok(t, s.PurgeQueue(t.Context(), mail, 0))
		if got := ids(claim(t, s, alice, 1, 10).Leased); got != "new " {
			t.Errorf("claimed %q", got)
		}
	})
}

// The pipelines of a client are its own affair; the store uses them for reading and for removing only.
func TestDeleteQueueGoesOnAfterAFailure(t *testing.T) {
	t.Parallel()
	s, f := flaky(t, backend{"", openMini})
	put(t, s, "a")
	f.plan("unlink", fault{err: said("ERR broken")})
	if err := s.DeleteQueue(t.Context(), mail); !errors.Is(err, said("ERR broken")) {
		t.Fatalf("got %v", err)
	}
	sound(t, s, mail)
	ok(t, s.DeleteQueue(t.Context(), mail))
	sound(t, s, mail)
}

// Rest that cannot look says nothing wrong: the note says "now".
func TestRestThatCannotLook(t *testing.T) {
	t.Parallel()
	for _, failing := range []string{"rest", "look"} {
		t.Run(failing, func(t *testing.T) {
			t.Parallel()
			restThatFails(t, failing)
		})
	}
}

func restThatFails(t *testing.T, failing string) {
	s, f := flaky(t, backend{"", openMini})
	put(t, s, "a")
	ok(t, s.Announce(t.Context(), []dispatch.Hint{{Queue: mail}}))
	workOn := []dispatch.Hint{{Queue: "quiet", Wait: -1}, {Queue: mail, Wait: time.Hour}}
	_, err := s.Rest(t.Context(), workOn) // so that the scripts are known
	ok(t, err)
	f.plan(failing, fault{err: said("ERR broken"), after: true})
	_, err = s.Rest(t.Context(), workOn)
	if !errors.Is(err, said("ERR broken")) {
		t.Errorf("got %v", err)
	}
	hints, err := s.Hints(t.Context(), 0)
	ok(t, err)
	for _, h := range hints {
		if h.Queue == mail {
			return
		}
	}
	t.Errorf("a due task of a queue that was not looked at is noted nowhere: %v", hints)
}

// A producer that finds no queue, and an operator who deletes it at the worst moment: the queue is listed.
func TestEnqueueWhileTheQueueIsDeleted(t *testing.T) {
	onTwo(t, func(t *testing.T, b backend) {
		for _, create := range []bool{false, true} {
			s, f := flaky(t, b)
			deletes := fault{do: func() {
				if err := s.DeleteQueue(context.Background(), mail); !errors.Is(err, dispatch.ErrQueueNotFound) {
					t.Errorf("deleted: %v", err)
				}
			}}
			if create {
				f.plan("queue_create", deletes)
				_, err := s.CreateQueue(t.Context(), dispatch.Queue{Name: mail})
				ok(t, err)
			} else {
				f.plan("enqueue", fault{}, deletes)
				put(t, s, "a")
			}
			sound(t, s, mail)
		}
	})
}

// A deletion whose first answer was lost removes nothing that was stored after it, and says what it has removed.
func TestLostAnswerOfDelete(t *testing.T) {
	onTwo(t, func(t *testing.T, b backend) {
		s, f := flaky(t, b)
		put(t, s, "a", "b")
		f.plan("delete", lostReply, fault{do: func() { put(t, s, "a") }})
		deleted, err := s.DeleteTasks(t.Context(), mail, []dispatch.TaskID{"a", "none"}, dispatch.DeleteOptions{})
		if err != nil || !slices.Equal(deleted, []bool{true, false}) {
			t.Errorf("deleted: %v, %v", deleted, err)
		}
		if got := ids(claim(t, s, alice, 1, 10).Leased); got != "a b " && got != "b a " {
			t.Errorf("claimed %q", got)
		}
		sound(t, s, mail)
	})
}

// A task that was rescheduled, and has failed before the call could tell, is repeated when its backoff is over and not sooner.
func TestLostAnswerOfReschedule(t *testing.T) {
	onTwo(t, func(t *testing.T, b backend) {
		s, f := flaky(t, b)
		put(t, s, "a")
		f.plan("reschedule", lostReply, fault{do: func() {
			settle(t, s, dispatch.Retry, time.Hour, claim(t, s, alice, 1, 1).Leased...)
		}}, lostReply, fault{do: func() { claim(t, s, alice, 2, 1) }})
		r, err := s.RescheduleTask(t.Context(), mail, dispatch.Task{ID: "a"})
		if err != nil || !r.Moved {
			t.Errorf("rescheduled: %+v, %v", r, err)
		}
		if info, err := s.Task(t.Context(), mail, "a"); err != nil || !info.Due.Equal(epoch.Add(time.Hour)) {
			t.Errorf("got %+v, %v", info, err)
		}
		// It runs when the call is made for the second time, and was moved all the same.
		if _, err = s.RescheduleTask(t.Context(), mail, dispatch.Task{ID: "a"}); err != nil {
			t.Errorf("rescheduled: %v", err)
		}
		sound(t, s, mail)
	})
}

// Tasks that were replayed under new IDs, and have run to their end before the call could tell, were replayed all the same.
func TestLostAnswerOfReplayOfAShortTask(t *testing.T) {
	onTwo(t, func(t *testing.T, b backend) {
		s, f := flaky(t, b)
		put(t, s, "a")
		settle(t, s, dispatch.Dead, time.Hour, claim(t, s, alice, 1, 1).Leased...)
		f.plan("replay", lostReply, fault{do: func() {
			settle(t, s, dispatch.Succeeded, 0, claim(t, s, alice, 2, 1).Leased...)
		}})
		r, err := s.ReplayTasks(t.Context(), mail, []dispatch.Replay{{ID: "a", NewID: "x"}, {ID: "none", NewID: "y"}})
		if err != nil || !slices.Equal(r.Replayed, []bool{true, false}) {
			t.Errorf("got %+v, %v", r, err)
		}
		sound(t, s, mail)
	})
}
