package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dispatchkit/dispatch"
)

func limitsChurn() Scenario {
	return Scenario{
		Name: "limits-churn",
		Doc: "queues with a rate, with few places and with both, while workers come, go and are killed and the limits are edited: no window " +
			"has more attempts than its limits allow, no more run at once, and the queues end",
		Bound: Bound{Recovery: 6 * time.Second, Duplicates: (*Run).Allowed, Unexplained: (*Run).Allowed},
		Run:   runLimitsChurn,
	}
}

// churn is a run of limits-churn.
type churn struct {
	*Run
	config  WorkerConfig
	workers []*Process
	logs    map[string]limitLog // by queue
}

// limitedQueues are the queues and which of the two limits each has.
var limitedQueues = []struct {
	name             string
	rate, concurrent bool
}{
	{name: "rated", rate: true},
	{name: "narrow", concurrent: true},
	{name: "both", rate: true, concurrent: true},
}

// The rates are such that the time between two attempts is a whole number of µs, as the store keeps it.
var (
	rates  = []float64{40, 50, 80, 100, 125, 200}
	bursts = []int{1, 2, 5, 10, 25}
)

func runLimitsChurn(ctx context.Context, r *Run) error {
	c := &churn{Run: r, logs: map[string]limitLog{}, config: WorkerConfig{Heartbeat: 300 * time.Millisecond, Stale: 2 * time.Second}}
	var queues []string
	for i := range limitedQueues {
		queues = append(queues, limitedQueues[i].name)
		if err := c.edit(ctx, i); err != nil {
			return err
		}
	}
	var err error
	if c.workers, err = r.Workers(ctx, 3, c.config); err != nil {
		return err
	}
	producer, err := r.Producer(ctx, Load{
		Queues: queues, Rate: 600, Batch: 10, Seed: r.Rand.Uint64(), Work: 40 * time.Millisecond, Timeout: time.Minute,
		FlakyShare: 0.05, SnoozeShare: 0.05, DelayShare: 0.1, Delay: time.Second,
	})
	if err != nil {
		return err
	}
	for until := time.Now().Add(Pick(r, 7*time.Second, 2*time.Minute)); time.Now().Before(until); {
		if err := c.step(ctx); err != nil {
			return err
		}
		if !Sleep(ctx, time.Duration(100+r.Rand.IntN(400))*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
	if err := producer.Finish(ctx); err != nil {
		return err
	}
	if err := r.Recovered(ctx); err != nil {
		return err
	}
	switch live, err := r.Live(ctx); {
	case err != nil:
		return err
	case live == 0:
		return errors.New("nothing waits: the limits were not felt")
	}
	if err := c.widen(ctx); err != nil {
		return err
	}
	if err := r.Drain(ctx, Pick(r, 30*time.Second, 2*time.Minute)); err != nil {
		return err
	}
	return c.judge()
}

// step is one change: half of the time an operator's, half of the time one of the fleet.
func (c *churn) step(ctx context.Context) (err error) {
	i := c.Rand.IntN(len(c.workers))
	switch n := c.Rand.IntN(10); {
	case n < 5:
		return c.edit(ctx, c.Rand.IntN(len(limitedQueues)))
	case n < 6 && len(c.workers) < 5:
		w, err := c.Worker(ctx, c.config)
		c.workers = append(c.workers, w)
		return err
	case n < 8:
		c.workers[i].Kill()
		left, err := c.LeftBy(ctx, c.workers[i])
		c.Allow(left)
		if err != nil {
			return err
		}
	default:
		if err := c.workers[i].Term(); err != nil {
			return err
		}
		if err := c.workers[i].Wait(ctx); err != nil {
			return err
		}
	}
	c.workers[i], err = c.Worker(ctx, c.config)
	return err
}

// edit draws new limits for a queue, and makes the queue if it is not there.
func (c *churn) edit(ctx context.Context, i int) error {
	q, next := limitedQueues[i], limits{}
	if q.rate {
		next.perSecond, next.burst = rates[c.Rand.IntN(len(rates))], bursts[c.Rand.IntN(len(bursts))]
	}
	if q.concurrent {
		next.concurrent = 1 + c.Rand.IntN(6)
	}
	return c.set(ctx, q.name, next)
}

func (c *churn) set(ctx context.Context, queue string, next limits) error {
	settings := dispatch.Queue{Name: queue, Rate: next.perSecond, Burst: next.burst, MaxConcurrent: next.concurrent}
	next.from = time.Now().UnixMicro()
	created, err := c.client.EnsureQueue(ctx, settings)
	if err == nil && !created {
		err = c.client.UpdateQueue(ctx, queue, func(q *dispatch.Queue) error {
			q.Rate, q.Burst, q.MaxConcurrent = settings.Rate, settings.Burst, settings.MaxConcurrent
			return nil
		})
	}
	next.to = time.Now().UnixMicro()
	c.logs[queue] = append(c.logs[queue], next)
	c.Note("queue %s: %g/s, burst %d, %d at once", queue, next.perSecond, next.burst, next.concurrent)
	return err
}

// widen sets limits with which the backlog is soon worked off.
func (c *churn) widen(ctx context.Context) error {
	for _, q := range limitedQueues {
		var wide limits
		if q.rate {
			wide.perSecond, wide.burst = 1000, 100
		}
		if q.concurrent {
			wide.concurrent = 40
		}
		if err := c.set(ctx, q.name, wide); err != nil {
			return err
		}
	}
	return nil
}

// judge looks for more than the limits allow, and makes sure that they were felt and did not stop the queues.
func (c *churn) judge() error {
	ledger, err := c.Ledger()
	if err != nil {
		return err
	}
	for _, q := range limitedQueues {
		use, err := c.logs[q.name].judge(q.name, ledger)
		c.Note("queue %s: %d attempts, %.0f at its rates; at most %d at once, %d times all that were allowed", q.name, use.attempts,
			use.allowed, use.most, use.full)
		switch {
		case err != nil:
			return err
		case q.concurrent && use.full == 0:
			return fmt.Errorf("queue %s never had as many attempts as it may: nothing was shown", q.name)
		case use.attempts == 0:
			return fmt.Errorf("queue %s had no attempts", q.name)
		}
	}
	return nil
}
