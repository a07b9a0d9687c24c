package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/bench/chaos/audit"
	"github.com/dispatchkit/dispatch/cluster"
)

func leaseHistory() Scenario {
	return Scenario{
		Name: "lease-history",
		Doc: "several stores claim, extend and settle a few tasks whose leases end all the time, through networks that lose requests and " +
			"replies: all calls about a task can be put into one order that explains all answers",
		Bound: Bound{Duplicates: anyNumber, Unexplained: anyNumber}, // leases are too short on purpose, and answers are not awaited
		Run:   runLeaseHistory,
	}
}

// leastWaves is how many waves of tasks there are, however slow the machine is.
const leastWaves = 5

func runLeaseHistory(ctx context.Context, r *Run) error {
	var clients []*leaseClient
	for i := range 5 {
		proxy, err := r.Proxy()
		if err != nil {
			return err
		}
		store, err := r.StoreAt(ctx, proxy.URL())
		if err != nil {
			return err
		}
		clients = append(clients, &leaseClient{
			number: i, store: store, proxy: proxy, random: rand.New(rand.NewPCG(r.Rand.Uint64(), 0)),
			worker: cluster.WorkerID(fmt.Sprintf("client%d", i)),
		})
	}
	var sum leaseTally
	waves := 0
	for until := time.Now().Add(Pick(r, 8*time.Second, 2*time.Minute)); time.Now().Before(until) || waves < leastWaves; waves++ {
		t, err := r.leaseWave(ctx, clients, waves)
		if err != nil {
			return err
		}
		sum.Calls, sum.Refused, sum.Unanswered, sum.Swept = sum.Calls+t.Calls, sum.Refused+t.Refused, sum.Unanswered+t.Unanswered, sum.Swept+t.Swept
	}
	r.Note("%d waves of tasks: %+v", waves, sum)
	if sum.Refused == 0 || sum.Unanswered == 0 || sum.Swept == 0 {
		return fmt.Errorf("nothing was shown: %+v", sum)
	}
	for _, c := range clients {
		if s := c.proxy.Stats(); s.LostReplies == 0 || s.LostRequests == 0 {
			return fmt.Errorf("nothing was lost on the way of client %d: %+v", c.number, s)
		}
	}
	return r.Drain(ctx, 5*time.Second)
}

// leaseWave has all clients work on some new tasks until these have ended, and judges what they were answered. Each wave has a queue
// of its own, so that a call of the wave before to which nobody awaited the answer does not take effect in this one.
func (r *Run) leaseWave(ctx context.Context, clients []*leaseClient, wave int) (leaseTally, error) {
	queue := fmt.Sprintf("register-%d", wave)
	tasks := make([]dispatch.Submission, 3)
	ids := make([]dispatch.TaskID, len(tasks))
	for i := range tasks {
		ids[i] = dispatch.TaskID(fmt.Sprintf("task-%d", i))
		tasks[i].Task = dispatch.Task{ID: ids[i], Queue: queue, Kind: taskKind, Timeout: leaseFor}
	}
	book := newLeaseBook(queue, r.Log, ids)
	if _, err := r.store.Enqueue(ctx, queue, tasks, dispatch.EnqueueOptions{}); err != nil {
		return leaseTally{}, err
	}
	for _, id := range ids {
		r.Log.Append(audit.Event{Kind: audit.KindAck, Queue: queue, ID: string(id), Result: audit.AckStored})
	}
	r.Fault("loss", audit.AnyWorker)
	var over atomic.Bool
	var wait sync.WaitGroup
	errs := make([]error, len(clients)+1)
	for i, c := range clients {
		c.book, c.held = book, nil
		wait.Go(func() { errs[i] = c.run(ctx, over.Load) })
	}
	errs[len(clients)] = Until(ctx, 20*time.Second, "the tasks of a wave have ended", func() (bool, error) {
		live, err := r.Live(ctx)
		return live == 0, err
	})
	over.Store(true)
	wait.Wait()
	r.Fault("heal", audit.AnyWorker)
	if err := errors.Join(errs...); err != nil {
		return book.tally, err
	}
	return book.tally, book.judge(20 * time.Second)
}
