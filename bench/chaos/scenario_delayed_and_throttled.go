package main

import (
	"context"
	"fmt"
	"time"

	"github.com/dispatchkit/dispatch/bench/chaos/audit"
)

func delayedAndThrottled() Scenario {
	return Scenario{
		Name: "delayed-and-throttled",
		Doc: "a network to Redis that takes 50 to 500 ms each way, or lets few bytes through, and whose connections break now and then: " +
			"service goes on, nothing starts early and nothing is lost",
		Bound: Bound{Recovery: 5 * time.Second},
		Run:   runDelayedAndThrottled,
	}
}

// stallBound is the longest time without a start while the network is bad.
const stallBound = 8 * time.Second

func runDelayedAndThrottled(ctx context.Context, r *Run) error {
	// Times that such a network needs: those of the other scenarios are shorter than what it takes to be heard.
	_, err := r.Workers(ctx, 3, WorkerConfig{
		LeaseGrace: 10 * time.Second, Heartbeat: time.Second, Stale: 10 * time.Second, LeaderTTL: 8 * time.Second, LeaderRetry: time.Second,
	})
	if err != nil {
		return err
	}
	var producers []*Process
	for range 3 { // each waits for an answer before it goes on
		p, err := r.Producer(ctx, Load{
			Queues: []string{"mail", "report", "image"}, Rate: 200, Batch: 20, Seed: r.Rand.Uint64(), Work: 40 * time.Millisecond,
			Timeout: 20 * time.Second, FlakyShare: 0.05, SnoozeShare: 0.05, NamedShare: 0.1, DelayShare: 0.3, Delay: 3 * time.Second,
		})
		if err != nil {
			return err
		}
		producers = append(producers, p)
	}
	proxy := r.Set.Primary().Proxy()
	r.Fault("delay", audit.AnyWorker)
	began, cuts := time.Now(), 0
	for time.Since(began) < Pick(r, 9*time.Second, 2*time.Minute) {
		delay := time.Duration(50+r.Rand.IntN(451)) * time.Millisecond
		speed := 0
		if r.Rand.IntN(2) == 0 {
			speed = 30_000 + r.Rand.IntN(100_000)
		}
		r.Note("%v each way, %d bytes/s", delay, speed)
		proxy.Delay(delay)
		proxy.Throttle(speed)
		if !Sleep(ctx, time.Duration(700+r.Rand.IntN(1000))*time.Millisecond) {
			return context.Cause(ctx)
		}
		if r.Rand.IntN(3) == 0 || cuts == 0 {
			proxy.Cut()
			cuts++
		}
	}
	proxy.Delay(0)
	proxy.Throttle(0)
	ended := time.Now()
	r.Fault("heal", audit.AnyWorker)
	if err := r.Recovered(ctx); err != nil {
		return err
	}
	if err := r.stalls(began, ended); err != nil {
		return err
	}
	r.Note("%d cuts", cuts)
	for _, p := range producers {
		if err := p.Term(); err != nil {
			return err
		}
	}
	for _, p := range producers {
		if err := p.Wait(ctx); err != nil {
			return err
		}
	}
	return r.Drain(ctx, 20*time.Second)
}

// stalls finds times without service.
func (r *Run) stalls(began, ended time.Time) error {
	ledger, err := r.Ledger()
	if err != nil {
		return err
	}
	starts, longest, last := 0, time.Duration(0), began
	for _, e := range ledger.Events {
		at := time.UnixMicro(e.At)
		if e.Kind != audit.KindStart || at.Before(began) || at.After(ended) {
			continue
		}
		starts++
		longest, last = max(longest, at.Sub(last)), at
	}
	longest = max(longest, ended.Sub(last))
	r.Note("%d starts in %v of bad network, the longest time without one was %v", starts, ended.Sub(began), longest)
	if longest > stallBound {
		return fmt.Errorf("service: nothing started for %v, more than %v", longest, stallBound)
	}
	return nil
}
