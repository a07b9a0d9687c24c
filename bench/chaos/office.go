package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/bench/chaos/audit"
)

// office is where the operators of big-backlog-admin work, and what they have done.
type office struct {
	*Run
	piled int

	mu    sync.Mutex
	pool  []dispatch.TaskID // of the backlog, that nobody has touched
	grave []dispatch.TaskID
	calls map[string]*callTimes
	// How many tasks were cancelled, deleted, and run before their time, and how often others were done.
	cancelled, deleted, ran, purges, replays, listed int
}

// callTimes is how long the calls of a kind took.
type callTimes struct {
	n            int
	longest, sum time.Duration
	bound        time.Duration
}

// callBound is that of a call that looks at no more than some tasks.
const callBound = time.Second

// pileDelay is when the first of the backlog are due.
const pileDelay = time.Hour

// pile enqueues the backlog, not through the ledger: it is accounted for by numbers.
func (o *office) pile(ctx context.Context, n int) error {
	for len(o.pool) < n {
		tasks := make([]dispatch.Task, min(5_000, n-len(o.pool)))
		for i := range tasks {
			tasks[i] = Work{}.Task(heapQueue)
			tasks[i].Delay = pileDelay + time.Duration(o.Rand.IntN(3_600_000))*time.Millisecond
		}
		results, err := o.client.Client.EnqueueMany(ctx, tasks)
		if err != nil {
			return err
		}
		for _, r := range results {
			if r.Err != nil {
				return r.Err
			}
			o.pool = append(o.pool, r.ID)
		}
	}
	o.piled = n
	o.Rand.Shuffle(n, func(i, j int) { o.pool[i], o.pool[j] = o.pool[j], o.pool[i] })
	return nil
}

// fillGrave has some tasks die.
func (o *office) fillGrave(ctx context.Context, n int) error {
	for range n {
		id, err := o.client.Enqueue(ctx, Work{Fatal: true}.Task(graveQueue))
		if err != nil {
			return err
		}
		o.grave = append(o.grave, id)
	}
	return Until(ctx, 10*time.Second, "all that are to die are dead", func() (bool, error) {
		counts, err := o.client.Counts(ctx, graveQueue)
		return counts.Dead == int64(n), err
	})
}

// draw takes a task of the backlog that nobody else will touch.
func (o *office) draw() dispatch.TaskID {
	o.mu.Lock()
	defer o.mu.Unlock()
	id := o.pool[len(o.pool)-1]
	o.pool = o.pool[:len(o.pool)-1]
	return id
}

// count adds to one of the numbers.
func (o *office) count(n *int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	*n++
}

// timed makes a call and notes how long it took.
func (o *office) timed(name string, bound time.Duration, call func() error) error {
	begun := time.Now()
	err := call()
	took := time.Since(begun)
	o.mu.Lock()
	defer o.mu.Unlock()
	t := o.calls[name]
	if t == nil {
		t = &callTimes{bound: bound}
		o.calls[name] = t
	}
	t.n++
	t.sum += took
	t.longest = max(t.longest, took)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// known writes a task of the backlog that is about to end to the ledger, as one that was stored: so the checker follows it.
func (o *office) known(id dispatch.TaskID) {
	o.Log.Append(audit.Event{Kind: audit.KindAck, Queue: heapQueue, ID: string(id), Result: audit.AckStored})
}

// act makes one call, as an operator might.
func (o *office) act(ctx context.Context, random *rand.Rand) error {
	c := o.client
	switch random.IntN(11) {
	case 0:
		err := o.timed("pause", callBound, func() error { return c.PauseQueue(ctx, heapQueue) })
		Sleep(ctx, time.Duration(random.IntN(30))*time.Millisecond)
		return errors.Join(err, o.timed("resume", callBound, func() error { return c.ResumeQueue(ctx, heapQueue) }))
	case 1:
		return o.timed("update", callBound, func() error {
			return c.UpdateQueue(ctx, heapQueue, func(q *dispatch.Queue) error { q.Weight = 1 + random.IntN(9); return nil })
		})
	case 2:
		return o.timed("count", callBound, func() error { _, err := c.Counts(ctx, heapQueue); return err })
	case 3:
		id := o.draw()
		return o.timed("inspect", callBound, func() error { _, err := c.Task(ctx, heapQueue, id); return err })
	case 4:
		id, at := o.draw(), time.Now().Add(pileDelay+time.Duration(random.IntN(3600))*time.Second)
		return o.timed("reschedule", callBound, func() error { return c.RescheduleTask(ctx, heapQueue, id, at) })
	case 5:
		id := o.draw()
		return o.timed("edit", callBound, func() error {
			return c.EditTask(ctx, heapQueue, id, func(t *dispatch.Task) error { t.Metadata = map[string]string{"edited": "yes"}; return nil })
		})
	case 6:
		id := o.draw()
		o.known(id)
		o.count(&o.cancelled)
		return o.timed("cancel", callBound, func() error { return c.CancelTask(ctx, heapQueue, id) })
	case 7:
		id := o.draw()
		o.known(id)
		o.count(&o.deleted)
		return o.timed("delete", callBound, func() error { return c.DeleteTask(ctx, heapQueue, id) })
	case 8:
		id := o.draw()
		o.known(id)
		o.count(&o.ran)
		return o.timed("run", callBound, func() error { return c.RunTask(ctx, heapQueue, id) })
	case 9:
		id := o.draw()
		o.known(id)
		o.count(&o.ran)
		return o.timed("reschedule to now", callBound, func() error { return c.RescheduleTask(ctx, heapQueue, id, time.Now()) })
	}
	first := random.IntN(len(o.grave) - 10)
	o.count(&o.replays)
	return o.timed("replay", callBound, func() error {
		_, err := c.ReplayTasks(ctx, graveQueue, o.grave[first:first+10], dispatch.ReplayOptions{})
		return err
	})
}

// list goes through the whole backlog, and makes sure that what stays is listed.
func (o *office) list(ctx context.Context) error {
	const page = 100 // about as many tasks as come in one answer
	seen := map[dispatch.TaskID]bool{}
	last, longest, n := time.Now(), time.Duration(0), 0
	for t, err := range o.client.Tasks(ctx, heapQueue, dispatch.Filter{States: []dispatch.TaskState{dispatch.TaskWaiting}}) {
		if err != nil {
			return fmt.Errorf("list: %w", err)
		}
		seen[t.ID] = true
		if n++; n%page == 0 {
			longest, last = max(longest, time.Since(last)), time.Now()
		}
	}
	if err := o.timed("list, one page", callBound, func() error { return nil }); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	t := o.calls["list, one page"]
	t.longest = max(t.longest, longest)
	o.listed++
	for _, id := range o.pool { // was there all the time, and still is
		if !seen[id] {
			return fmt.Errorf("lost: task %s of the backlog is not listed", id)
		}
	}
	return nil
}

// purge fills a queue whose tasks run one by one, and purges it.
func (o *office) purge(ctx context.Context, random *rand.Rand, n int) error {
	if _, err := o.client.EnsureQueue(ctx, dispatch.Queue{Name: binQueue, MaxConcurrent: 1}); err != nil {
		return err
	}
	tasks := make([]dispatch.Task, n)
	for i := range tasks {
		tasks[i] = Work{For: 30 * time.Millisecond}.Task(binQueue)
		if i%2 == 0 {
			tasks[i].Delay = pileDelay
		}
	}
	if _, err := o.client.EnqueueMany(ctx, tasks); err != nil {
		return err
	}
	Sleep(ctx, time.Duration(random.IntN(200))*time.Millisecond)
	bound := 2*time.Second + time.Duration(n)*200*time.Microsecond
	begun := time.Now()
	if err := o.timed("purge", bound, func() error { return o.client.PurgeQueue(ctx, binQueue) }); err != nil {
		return err
	}
	o.count(&o.purges)
	o.Log.Append(audit.Event{Kind: audit.KindNote, Queue: binQueue, At: begun.UnixMicro(), Text: purgeNote})
	counts, err := o.client.Counts(ctx, binQueue)
	if err != nil {
		return err
	}
	if waits := counts.Ready + counts.Scheduled; waits > 0 {
		return fmt.Errorf("leftover: %d tasks of queue %s wait after it was purged", waits, binQueue)
	}
	return nil
}

// purgeNote is what a note says of when a purge began, and purgeSlack how long its first step may take.
const (
	purgeNote  = "a purge has begun"
	purgeSlack = 250 * time.Millisecond
)

// dueBefore is how many tasks of a queue are due before an instant.
func (o *office) dueBefore(ctx context.Context, queue string, at time.Time) (int64, error) {
	raw, err := o.Raw()
	if err != nil {
		return 0, err
	}
	defer raw.Close()
	return raw.ZCount(ctx, key(queue, "due"), "-inf", fmt.Sprint(at.UnixMilli())).Result()
}

// judge finds calls that took longer than their bound, and purged tasks that were attempted.
func (o *office) judge() error {
	var slow []string
	names := make([]string, 0, len(o.calls))
	for name := range o.calls {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		t := o.calls[name]
		o.Note("%s: %d calls, %v on average, the longest %v", name, t.n, t.sum/time.Duration(t.n), t.longest)
		if t.longest > t.bound {
			slow = append(slow, fmt.Sprintf("%s took %v, more than %v", name, t.longest, t.bound))
		}
	}
	if len(slow) > 0 {
		return fmt.Errorf("slow: %v", slow)
	}
	return o.judgePurges()
}

// judgePurges finds attempts whose lease was given out after a purge had begun to which their task fell.
func (o *office) judgePurges() error {
	ledger, err := o.Ledger()
	if err != nil {
		return err
	}
	var begun []int64
	stored := map[string]int64{}
	for _, e := range ledger.Events {
		switch {
		case e.Queue != binQueue:
		case e.Kind == audit.KindNote && e.Text == purgeNote:
			begun = append(begun, e.At)
		case e.Kind == audit.KindAck:
			stored[e.ID] = e.At
		}
	}
	for task, starts := range ledger.starts() {
		for _, at := range begun {
			// A purge is complete when its call returns; it has begun some time after the call was made.
			if task.Queue == binQueue && stored[task.ID] < at && starts[0].Token > at+purgeSlack.Microseconds() {
				return fmt.Errorf("forged: task %s was purged, and its lease was given out %d ms after the purge began", task.ID,
					(starts[0].Token-at)/1000)
			}
		}
	}
	return nil
}
