package redisstore

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/cluster"
)

const (
	mail  = "mail"
	alice = cluster.WorkerID("w-alice")
	bob   = cluster.WorkerID("w-bob")
	lease = time.Minute + 10*time.Second
)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// task is a task that is due at once.
func task(id string) dispatch.Submission {
	return dispatch.Submission{Task: dispatch.Task{ID: dispatch.TaskID(id), Kind: "test", Timeout: time.Minute}}
}

func namedTask(id string) dispatch.Submission {
	s := task(id)
	s.Named, s.Nonce = true, 1
	return s
}

func enqueue(t testing.TB, s *testStore, tasks ...dispatch.Submission) dispatch.EnqueueReply {
	t.Helper()
	r, err := s.Enqueue(t.Context(), mail, tasks, dispatch.EnqueueOptions{})
	ok(t, err)
	return r
}

// put enqueues plain tasks.
func put(t testing.TB, s *testStore, ids ...string) {
	t.Helper()
	for _, id := range ids {
		enqueue(t, s, task(id))
	}
}

func claimRequest(w cluster.WorkerID, seq int64, budget int) dispatch.ClaimRequest {
	return dispatch.ClaimRequest{Queue: mail, Worker: w, Seq: seq, Budget: budget, Grace: 10 * time.Second}
}

func claim(t testing.TB, s *testStore, w cluster.WorkerID, seq int64, budget int) *dispatch.ClaimReply {
	t.Helper()
	r, err := s.Claim(t.Context(), claimRequest(w, seq, budget))
	ok(t, err)
	return r
}

func settleRequest(seq int64, outcome dispatch.Outcome, after time.Duration, leased ...dispatch.Leased) dispatch.SettleRequest {
	r := dispatch.SettleRequest{Queue: mail, Worker: alice, Seq: seq}
	for _, l := range leased {
		r.Items = append(r.Items, dispatch.Settlement{ID: l.Task.ID, Lease: l.Lease, Outcome: outcome, After: after})
	}
	return r
}

func settle(t testing.TB, s *testStore, outcome dispatch.Outcome, after time.Duration, leased ...dispatch.Leased) dispatch.SettleReply {
	t.Helper()
	r, err := s.Settle(t.Context(), settleRequest(0, outcome, after, leased...))
	ok(t, err)
	return r
}

func ids(leased []dispatch.Leased) string {
	text := ""
	for _, l := range leased {
		text += string(l.Task.ID) + " "
	}
	return text
}

// remove deletes tasks that must be there.
func remove(t testing.TB, s *testStore, tombstone time.Duration, ids ...dispatch.TaskID) {
	t.Helper()
	deleted, err := s.DeleteTasks(t.Context(), mail, ids, dispatch.DeleteOptions{Tombstone: tombstone})
	if err != nil || len(deleted) != len(ids) || slices.Contains(deleted, false) {
		t.Fatalf("deleted: %v, %v", deleted, err)
	}
}

func sound(t testing.TB, s *testStore, queue string) {
	t.Helper()
	if err := s.CheckInvariants(context.WithoutCancel(t.Context()), queue); err != nil {
		t.Errorf("invariants: %v", err)
	}
}

// workOnEverything calls every method at least twice, so that each script runs from its text and from the cache, and
// demands that it works.
func workOnEverything(t testing.TB, s *testStore) {
	t.Helper()
	ctx := t.Context()
	for i := range 2 {
		workOnCron(t, s)
		workOnFleet(t, s)
		_, err := s.CreateQueue(ctx, dispatch.Queue{Name: mail, Rate: 1000, Burst: 100, MaxConcurrent: 50})
		ok(t, err)
		q, err := s.Queue(ctx, mail)
		ok(t, err)
		if replaced, err := s.ReplaceQueue(ctx, *q); err != nil || !replaced {
			t.Fatalf("replaced: %v, %v", replaced, err)
		}
		ok(t, s.SetState(ctx, mail, dispatch.QueuePaused))
		ok(t, s.SetState(ctx, mail, dispatch.QueueRunning))
		put(t, s, "a", "b", "c", "d", "e")
		ok(t, s.Announce(ctx, []dispatch.Hint{{Queue: mail}}))
		if hints, err := s.Hints(ctx, time.Second); err != nil || len(hints) != 1 {
			t.Fatalf("hints: %v, %v", hints, err)
		}
		if ended, err := s.Await(ctx, mail, []dispatch.TaskID{"a", "z"}); err != nil || len(ended) != 1 {
			t.Fatalf("ended: %v, %v", ended, err)
		}
		leased := claim(t, s, alice, int64(i+1), 4).Leased
		if len(leased) != 4 {
			t.Fatalf("leased %s", ids(leased))
		}
		moved, err := s.Extend(ctx, mail, []dispatch.Extension{{ID: leased[0].Task.ID, Lease: leased[0].Lease, For: time.Hour}})
		if err != nil || !moved[0] {
			t.Fatalf("extended: %v, %v", moved, err)
		}
		_, _, err = s.ExpiredLeases(ctx, mail, 10)
		ok(t, err)
		held, _, err := s.HeldLeases(ctx, mail, []cluster.WorkerID{alice}, 0)
		if err != nil || len(held) != 4 {
			t.Fatalf("held: %s, %v", ids(held), err)
		}
		settle(t, s, dispatch.Retry, time.Hour, leased[0])
		settle(t, s, dispatch.Dead, time.Millisecond, leased[1])
		settle(t, s, dispatch.Succeeded, 0, leased[2])
		settle(t, s, dispatch.Released, 0, leased[3])
		for _, state := range []dispatch.TaskState{dispatch.TaskWaiting, dispatch.TaskDead} {
			if page, _, err := s.Tasks(ctx, mail, state, ""); err != nil || len(page) == 0 {
				t.Fatalf("%s tasks: %d, %v", state, len(page), err)
			}
		}
		if r, err := s.ReplayTasks(ctx, mail, []dispatch.Replay{{ID: leased[1].Task.ID}}); err != nil || !r.Replayed[0] {
			t.Fatalf("replayed: %+v, %v", r, err)
		}
		_, err = s.RescheduleTask(ctx, mail, dispatch.Task{ID: leased[1].Task.ID, Delay: time.Minute})
		ok(t, err)
		ok(t, s.EditTask(ctx, mail, leased[1].Task.ID, func(t *dispatch.Task) error { t.Kind += "er"; return nil }))
		_, err = s.RunTask(ctx, mail, leased[1].Task.ID)
		ok(t, err)
		if done, err := s.CancelTask(ctx, mail, dispatch.Cancellation{ID: leased[1].Task.ID}); err != nil || !done {
			t.Fatalf("cancelled: %v, %v", done, err)
		}
		remove(t, s, time.Hour, leased[3].Task.ID)
		_, err = s.Counts(ctx, mail)
		ok(t, err)
		_, err = s.Rest(ctx, []dispatch.Hint{{Queue: mail, Wait: -1}})
		ok(t, err)
		ok(t, s.client.ZRem(ctx, s.queueKeys(mail).due, string(leased[0].Task.ID)).Err()) // so that there is something to repair
		_, err = s.Look(ctx, []string{mail})
		ok(t, err)
		_, err = s.Expiring(ctx, 10)
		ok(t, err)
		_, err = s.Cleanup(ctx, mail, 10)
		ok(t, err)
		ok(t, s.PurgeQueue(ctx, mail, time.Minute))
		sound(t, s, mail)
		ok(t, s.DeleteQueue(ctx, mail))
		names, _, err := s.Queues(ctx, 0)
		if err != nil || len(names) != 0 {
			t.Fatalf("queues: %v, %v", fmt.Sprint(names), err)
		}
	}
}
