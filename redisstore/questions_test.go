package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/cluster"
)

// questions are all calls that read an answer of a server, with what must be true of theirs.
var questions = []struct {
	name string
	ask  func(ctx context.Context, s *Store) error
}{
	{"enqueue", func(ctx context.Context, s *Store) error {
		r, err := s.Enqueue(ctx, mail, []dispatch.Submission{task("a"), namedTask("b")}, dispatch.EnqueueOptions{})
		if err != nil || r.Refused {
			return err
		}
		return answers(len(r.Duplicate), 2, 2)
	}},
	{"claim", func(ctx context.Context, s *Store) error {
		r, err := s.Claim(ctx, claimRequest(alice, 1, 4))
		if err != nil {
			return err
		}
		for _, l := range r.Leased {
			if l.Task.Queue != mail || l.Err == nil && l.Worker == "" {
				return broken("lease %+v", l)
			}
		}
		return nil
	}},
	{"settle", func(ctx context.Context, s *Store) error {
		items := []dispatch.Leased{{Task: dispatch.Task{ID: "a"}}, {Task: dispatch.Task{ID: "b"}}}
		r, err := s.Settle(ctx, settleRequest(1, dispatch.Dead, time.Hour, items...))
		if err != nil {
			return err
		}
		for i, dropped := range r.Dropped {
			if dropped && !r.Applied[i] {
				return broken("dropped and not applied: %+v", r)
			}
		}
		return answers(len(r.Applied), 2, 2)
	}},
	{"extend", func(ctx context.Context, s *Store) error {
		moved, err := s.Extend(ctx, mail, []dispatch.Extension{{ID: "a"}, {ID: "b"}})
		if err != nil {
			return err
		}
		return answers(len(moved), 2, 2)
	}},
	{"expired", func(ctx context.Context, s *Store) error {
		_, _, err := s.ExpiredLeases(ctx, mail, 10)
		return err
	}},
	{"held", func(ctx context.Context, s *Store) error {
		held, _, err := s.HeldLeases(ctx, mail, []cluster.WorkerID{alice}, 0)
		for _, l := range held {
			if l.Worker != alice {
				return broken("%s holds it", l.Worker)
			}
		}
		return err
	}},
	{"lease", func(ctx context.Context, s *Store) error {
		_, err := s.Lease(ctx, mail, "a")
		return err
	}},
	{"task", func(ctx context.Context, s *Store) error {
		t, err := s.Task(ctx, mail, "a")
		if err == nil && t == nil {
			return broken("no task and no error")
		}
		return err
	}},
	{"tasks", func(ctx context.Context, s *Store) error {
		page, _, err := s.Tasks(ctx, mail, dispatch.TaskWaiting, "")
		for _, t := range page {
			if t.State != dispatch.TaskWaiting {
				return broken("it is %q", t.State)
			}
		}
		return err
	}},
	{"delete", func(ctx context.Context, s *Store) error {
		deleted, err := s.DeleteTasks(ctx, mail, []dispatch.TaskID{"a", "b", "c"}, dispatch.DeleteOptions{})
		return answersOr(err, len(deleted), 3)
	}},
	{"replay", func(ctx context.Context, s *Store) error {
		r, err := s.ReplayTasks(ctx, mail, []dispatch.Replay{{ID: "a", NewID: "x"}, {ID: "b"}, {ID: "c"}})
		return answersOr(err, len(r.Replayed), 3)
	}},
	{"cancel", func(ctx context.Context, s *Store) error {
		_, err := s.CancelTask(ctx, mail, dispatch.Cancellation{ID: "a", Retention: time.Hour})
		return err
	}},
	{"run", func(ctx context.Context, s *Store) error {
		_, err := s.RunTask(ctx, mail, "a")
		return err
	}},
	{"reschedule", func(ctx context.Context, s *Store) error {
		_, err := s.RescheduleTask(ctx, mail, dispatch.Task{ID: "a", Delay: time.Second})
		return err
	}},
	{"edit", func(ctx context.Context, s *Store) error {
		return s.EditTask(ctx, mail, "a", func(t *dispatch.Task) error { t.Kind = "other"; return nil })
	}},
	{"queue", func(ctx context.Context, s *Store) error {
		q, err := s.Queue(ctx, mail)
		if err == nil && q.Name != mail {
			return broken("queue %q", q.Name)
		}
		return err
	}},
	{"replace", func(ctx context.Context, s *Store) error {
		_, err := s.ReplaceQueue(ctx, dispatch.Queue{Name: mail})
		return err
	}},
	{"counts", func(ctx context.Context, s *Store) error {
		_, err := s.Counts(ctx, mail)
		return err
	}},
	{"purge", func(ctx context.Context, s *Store) error { return s.PurgeQueue(ctx, mail, time.Minute) }},
	{"cleanup", func(ctx context.Context, s *Store) error {
		_, err := s.Cleanup(ctx, mail, 10)
		return err
	}},
	{"hints", func(ctx context.Context, s *Store) error {
		_, err := s.Hints(ctx, time.Hour)
		return err
	}},
	{"rest", func(ctx context.Context, s *Store) error {
		_, err := s.Rest(ctx, []dispatch.Hint{{Queue: mail, Wait: -1}})
		return err
	}},
	{"await", func(ctx context.Context, s *Store) error {
		ended, err := s.Await(ctx, mail, []dispatch.TaskID{"a", "b"})
		if len(ended) > 2 {
			return broken("%d of 2 tasks have ended", len(ended))
		}
		return err
	}},
	{"workers", func(ctx context.Context, s *Store) error {
		_, err := s.ListWorkers(ctx)
		return err
	}},
	{"worker", func(ctx context.Context, s *Store) error {
		w, err := s.GetWorker(ctx, alice)
		if err == nil && w == nil {
			return broken("no worker and no error")
		}
		return err
	}},
	{"reap", func(ctx context.Context, s *Store) error {
		_, err := s.ReapDeadWorkers(ctx, time.Minute)
		return err
	}},
	{"term", func(ctx context.Context, s *Store) error {
		_, err := s.BeginTerm(ctx, alice)
		return err
	}},
	{"due entries", func(ctx context.Context, s *Store) error {
		_, _, _, err := s.DueEntries(ctx, 0, 10)
		return err
	}},
}

// errBroken is an answer that the store should not have believed.
type errBroken struct{ text string }

func (e errBroken) Error() string { return e.text }

func broken(format string, args ...any) error { return errBroken{fmt.Sprintf(format, args...)} }

func answers(got, least, most int) error {
	if got < least || got > most {
		return broken("%d answers, want %d to %d", got, least, most)
	}
	return nil
}

// answersOr is for calls that go in parts: an error leaves the answers before it.
func answersOr(err error, got, want int) error {
	least := want
	if err != nil {
		least = 0
	}
	return cmp.Or(answers(got, least, want), err)
}
