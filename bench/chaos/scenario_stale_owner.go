package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/bench/chaos/audit"
)

func staleOwner() Scenario {
	return Scenario{
		Name: "stale-owner",
		Doc: "handlers go on after their leases were given to others, because their worker is frozen or because they ignore that they " +
			"are to end, and then succeed, fail, ask for more time, put themselves off or leave a result: nothing of it takes effect",
		Bound: Bound{
			Duplicates: (*Run).Allowed,
			Leftover:   []string{"{late-*}:tasks", "{late-*}:state", "{late-*}:done"}, // the results
		},
		Run: runStaleOwner,
	}
}

// What the late ones report, by what their IDs begin with.
var lateReports = map[string]Work{
	"success": {Gate: true},
	"failure": {Gate: true, Fail: true},
	"extend":  {Gate: true, Extend: time.Minute},
	"snooze":  {Gate: true, Snooze: true},
	"result":  {Gate: true, Result: true},
}

func runStaleOwner(ctx context.Context, r *Run) error {
	for round := range Pick(r, 1, 8) {
		s := &stale{Run: r, round: round, each: Pick(r, 4, 2+r.Rand.IntN(30))}
		if err := s.play(ctx); err != nil {
			return err
		}
	}
	if err := r.Drain(ctx, 20*time.Second); err != nil {
		return err
	}
	h, err := r.History()
	if err != nil {
		return err
	}
	return r.resultsOfHolders(h)
}

// stale is one round of stale-owner. Two owners take tasks and do not come to an end: one is frozen, the other one is told to stop, so
// that it takes no others, and its handlers do not care. Each has two queues. The tasks of the one are being worked on by their second
// owner when the first one reports; those of the other have ended by then.
type stale struct {
	*Run
	round, each int
}

const lateTimeout = 4 * time.Second // of each task: the second owners hold theirs while the first ones report

func (s *stale) queue(owner, state string) string {
	return fmt.Sprintf("late-%d-%s-%s", s.round, owner, state)
}

// held are the queues whose tasks are being worked on when the late ones report; ended are those whose tasks have ended.
func (s *stale) held() []string {
	return []string{s.queue("frozen", "held"), s.queue("deaf", "held")}
}

func (s *stale) ended() []string {
	return []string{s.queue("frozen", "ended"), s.queue("deaf", "ended")}
}

func (s *stale) play(ctx context.Context) error {
	const places = 1000
	var owners []*Process
	for _, name := range []string{"frozen", "deaf"} {
		owner, err := s.Worker(ctx, WorkerConfig{
			Queues: []string{s.queue(name, "held"), s.queue(name, "ended")}, Places: places, Drain: time.Minute,
		})
		if err != nil {
			return err
		}
		owners = append(owners, owner)
	}
	if err := s.fill(ctx); err != nil {
		return err
	}
	mine := func(e *audit.Event) bool { return e.Who == owners[0].Who || e.Who == owners[1].Who }
	total := 4 * len(lateReports) * s.each
	err := s.Await(ctx, 10*time.Second, "the first owners work on everything", func(h *audit.History) bool {
		return count(h, func(e *audit.Event) bool { return e.Kind == audit.KindStart && mine(e) }) == total
	})
	if err != nil {
		return err
	}
	if err := owners[0].Stop(); err != nil {
		return err
	}
	if err := owners[1].Term(); err != nil {
		return err
	}
	s.Allow(total)
	holder, err := s.Worker(ctx, WorkerConfig{Queues: s.held(), Places: places})
	if err != nil {
		return err
	}
	finisher, err := s.Worker(ctx, WorkerConfig{Queues: s.ended(), Places: places})
	if err != nil {
		return err
	}
	if err := finisher.Open(); err != nil {
		return err
	}
	err = s.Await(ctx, 20*time.Second, "the second owners have everything", func(h *audit.History) bool {
		holds := count(h, func(e *audit.Event) bool { return e.Kind == audit.KindStart && e.Who == holder.Who })
		ended := count(h, func(e *audit.Event) bool {
			return e.Kind == audit.KindOutcome && e.Who == finisher.Who && e.Outcome == audit.OutcomeSucceeded ||
				e.Kind == audit.KindOutcome && e.Who == finisher.Who && strings.HasPrefix(e.ID, "failure") && e.Outcome == audit.OutcomeDead
		})
		return holds >= total/2 && ended == total/2
	})
	if err != nil {
		return err
	}
	if err := s.report(ctx, owners, mine, total); err != nil {
		return err
	}
	return holder.Open()
}

// fill enqueues the tasks of a round.
func (s *stale) fill(ctx context.Context) error {
	for _, queue := range slices.Concat(s.held(), s.ended()) {
		var tasks []dispatch.Task
		for _, report := range slices.Sorted(maps.Keys(lateReports)) {
			for i := range s.each {
				t := lateReports[report].Task(queue)
				t.ID, t.Timeout = dispatch.TaskID(report+"-"+strconv.Itoa(i)), lateTimeout
				t.Retry = &dispatch.RetryConfig{MaxAttempts: 2, MinBackoff: 10 * time.Millisecond, MaxBackoff: 50 * time.Millisecond}
				if report == "result" {
					t.Retention = time.Hour
				}
				tasks = append(tasks, t)
			}
		}
		if _, err := s.client.EnqueueMany(ctx, tasks); err != nil {
			return err
		}
	}
	return nil
}

// report lets the first owners come to their end, and looks at what has changed by that in Redis, and at what they were told.
func (s *stale) report(ctx context.Context, owners []*Process, mine func(*audit.Event) bool, total int) error {
	raw, err := s.Raw()
	if err != nil {
		return err
	}
	defer raw.Close()
	before, err := s.leases(ctx, raw)
	if err != nil {
		return err
	}
	if err := owners[0].Cont(); err != nil {
		return err
	}
	for _, owner := range owners {
		if err := owner.Open(); err != nil {
			return err
		}
	}
	var took, told int
	err = s.Await(ctx, 20*time.Second, "the first owners know what became of their reports", func(h *audit.History) bool {
		took = count(h, func(e *audit.Event) bool {
			return e.Kind == audit.KindOutcome && mine(e) && e.Outcome != audit.OutcomeDiscarded && e.Outcome != audit.OutcomeLeaseLost
		})
		told = count(h, func(e *audit.Event) bool {
			return e.Kind == audit.KindNote && mine(e) && strings.Contains(e.Text, dispatch.ErrLeaseLost.Error())
		})
		return took+count(h, func(e *audit.Event) bool {
			return e.Kind == audit.KindOutcome && mine(e) && e.Outcome == audit.OutcomeDiscarded
		}) >= total
	})
	if err != nil {
		return err
	}
	after, err := s.leases(ctx, raw)
	switch {
	case err != nil:
		return err
	case took > 0:
		return fmt.Errorf("%d late reports were taken", took)
	case told != total/len(lateReports):
		return fmt.Errorf("%d late calls of Extend were refused, of %d", told, total/len(lateReports))
	case !maps.Equal(before, after):
		return fmt.Errorf("late reports have changed leases: %v became %v", before, after)
	}
	return nil
}

// leases are all leases of the queues that are held, with their ends.
func (s *stale) leases(ctx context.Context, raw redis.UniversalClient) (map[string]string, error) {
	all := map[string]string{}
	for _, queue := range s.held() {
		holders, err := raw.HGetAll(ctx, key(queue, "leases")).Result()
		if err != nil {
			return nil, err
		}
		ends, err := raw.ZRangeWithScores(ctx, key(queue, "leased"), 0, -1).Result()
		if err != nil {
			return nil, err
		}
		for _, z := range ends {
			id := z.Member.(string)
			all[queue+"/"+id] = fmt.Sprintf("%s until %.0f", holders[id], z.Score)
		}
	}
	return all, nil
}

// resultsOfHolders checks that each result that is kept is that of the attempt whose success was accepted.
func (r *Run) resultsOfHolders(h *audit.History) error {
	kept := 0
	for _, e := range h.Events {
		final, there := r.snap.Finals[e.Task()]
		if e.Kind != audit.KindOutcome || e.Outcome != audit.OutcomeSucceeded || !there || final.State != audit.StateDone {
			continue
		}
		if kept++; string(final.Result) != strconv.FormatInt(e.Token, 10) {
			return fmt.Errorf("task %s of queue %s succeeded under token %d, and its result is that of %q", e.ID, e.Queue, e.Token, final.Result)
		}
	}
	if kept == 0 {
		return fmt.Errorf("no result was kept, so nothing was shown")
	}
	return nil
}
