package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/dispatchkit/dispatch"
)

// Load is tasks to enqueue: how many, how fast, and what they do. Fields that end in Share are parts of 1, drawn for each task and
// independent of each other; the zero value of each is never.
type Load struct {
	// Queues are used in turn; empty means one, "work".
	Queues []string
	// Tasks is how many there are; 0 means until the context ends.
	Tasks int
	// Rate is how many per second; 0 means as fast as they are stored.
	Rate float64
	// Batch is how many one call of EnqueueMany takes; 0 or 1 means a call of Enqueue for each.
	Batch int
	// Seed decides what is drawn.
	Seed uint64

	// Work is the longest that a task works, drawn evenly from 0 on. LongShare of the tasks work LongWork instead, whatever
	// becomes of their lease.
	Work, LongWork time.Duration
	LongShare      float64
	// Timeout is that of the tasks; 0 means 2 s.
	Timeout time.Duration
	// DelayShare of the tasks are due later, by up to Delay; half of them say so by their ScheduleTime.
	Delay      time.Duration
	DelayShare float64
	// FlakyShare fail at their first attempt, SnoozeShare put themselves off once, FatalShare die at once.
	FlakyShare, SnoozeShare, FatalShare float64
	// NamedShare have an ID of the caller's, ExtendShare ask for more time, and RetainShare stay readable for Retain.
	NamedShare, ExtendShare, RetainShare float64
	Retain                               time.Duration
	// Pad is how many bytes the payloads are longer than they have to be.
	Pad int
	// Names begins the IDs of named tasks, so that another process can repeat them; empty means the name of the process.
	Names string
}

// quickRetry has tasks come back at once, so that runs are short.
var quickRetry = dispatch.RetryConfig{MinBackoff: 10 * time.Millisecond, MaxBackoff: 200 * time.Millisecond}

// Produce enqueues a load from this process and returns when all is stored or refused, or ctx has ended, which is no error. What
// the store refuses, or does not answer for, is in the ledger and not tried again.
func (r *Run) Produce(ctx context.Context, l Load) error { return produce(ctx, r.client, "main", l) }

func produce(ctx context.Context, c *Client, who string, l Load) error {
	if len(l.Queues) == 0 {
		l.Queues = []string{"work"}
	}
	l.Batch, l.Timeout, l.Names = max(l.Batch, 1), orElse(l.Timeout, 2*time.Second), orElse(l.Names, who)
	random := rand.New(rand.NewPCG(l.Seed, 0))
	begun := time.Now()
	for n := 0; (l.Tasks == 0 || n < l.Tasks) && ctx.Err() == nil; {
		size := l.Batch
		if l.Tasks > 0 {
			size = min(size, l.Tasks-n)
		}
		batch := make([]dispatch.Task, size)
		for i := range batch {
			batch[i] = l.draw(random, fmt.Sprintf("%s-%d", l.Names, n+i), l.Queues[(n+i)%len(l.Queues)])
		}
		// A store that is full or away is part of the game; a task that is invalid is not.
		if err := enqueue(ctx, c, batch); err != nil {
			return err
		}
		n += size
		if l.Rate > 0 {
			Sleep(ctx, time.Until(begun.Add(time.Duration(float64(n)/l.Rate*float64(time.Second)))))
		}
	}
	return nil
}

// enqueue stores a batch; an error is one of the caller's making.
func enqueue(ctx context.Context, c *Client, batch []dispatch.Task) error {
	var invalid *dispatch.FieldError
	if len(batch) == 1 {
		if _, err := c.Enqueue(ctx, batch[0]); errors.As(err, &invalid) {
			return err
		}
		return nil
	}
	results, _ := c.EnqueueMany(ctx, batch)
	for _, r := range results {
		if errors.As(r.Err, &invalid) {
			return r.Err
		}
	}
	return nil
}

// draw makes one task. It takes the same draws from random whatever comes of them.
func (l Load) draw(random *rand.Rand, name, queue string) dispatch.Task {
	chance := func(share float64) bool { return random.Float64() < share }
	upTo := func(d time.Duration) time.Duration { return time.Duration(random.Float64() * float64(d)) }
	t := dispatch.Task{Queue: queue, Kind: taskKind, Timeout: l.Timeout, Retry: &quickRetry}
	work, long, delay := upTo(l.Work), chance(l.LongShare), upTo(l.Delay)
	delayed, scheduled := chance(l.DelayShare), chance(0.5)
	flaky, snooze, fatal, named := chance(l.FlakyShare), chance(l.SnoozeShare), chance(l.FatalShare), chance(l.NamedShare)
	extend, retain := chance(l.ExtendShare), chance(l.RetainShare)
	if delayed {
		if delay = delay.Truncate(time.Millisecond); scheduled {
			t.ScheduleTime = time.Now().Add(delay).Truncate(time.Millisecond)
		} else {
			t.Delay = delay
		}
	}
	does := Work{For: work}
	switch {
	case long:
		does.For, does.Stubborn = l.LongWork, true
	case fatal:
		does.Fatal = true
	case flaky:
		does.Flaky = true
	case snooze:
		does.Snooze = true
	}
	if extend {
		does.Extend = l.Timeout
	}
	if retain {
		t.Retention = l.Retain
	}
	if named {
		t.ID = dispatch.TaskID("named-" + name)
	}
	return padded(does.onto(t), l.Pad)
}

// padded makes the payload of a task longer. To who reads it as JSON it is the same.
func padded(t dispatch.Task, n int) dispatch.Task {
	t.Payload = append(t.Payload, bytes.Repeat([]byte{' '}, n)...)
	return t
}

func orElse[T comparable](v, other T) T {
	var zero T
	if v == zero {
		return other
	}
	return v
}
