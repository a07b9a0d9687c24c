package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/dispatchkit/dispatch/bench/chaos/faultproxy"
)

func errorStorm() Scenario {
	return Scenario{
		Name: "error-storm",
		Doc: "half of all commands fail for a while, with an error, before or after they ran, while a backlog is worked off: afterwards " +
			"nothing stays leased, and during the outage no worker takes more than a core",
		Bound: Bound{Recovery: 5 * time.Second},
		Run:   runErrorStorm,
	}
}

func runErrorStorm(ctx context.Context, r *Run) error {
	tasks, lasts := Pick(r, 8_000, 40_000), Pick(r, 4*time.Second, 10*time.Second)
	err := r.Produce(ctx, Load{
		Queues: []string{"mail", "report", "image"}, Tasks: tasks, Batch: 500, Seed: r.Rand.Uint64(),
		Work: 4 * time.Millisecond, Timeout: 20 * time.Second,
	})
	if err != nil {
		return err
	}
	proxy := r.Set.Nodes[0].Proxy()
	storm := storm{random: rand.New(rand.NewPCG(r.Rand.Uint64(), 0))}
	workers, err := r.Workers(ctx, 2, WorkerConfig{LeaseGrace: 10 * time.Second, Stale: 30 * time.Second})
	if err != nil {
		return err
	}
	used, begun, err := cpuOf(workers)
	if err != nil {
		return err
	}
	r.Fault("loss", r.Set.Nodes[0].Addr())
	for _, l := range storm.losses() {
		proxy.Lose(l)
		if !Sleep(ctx, lasts/storms) {
			return context.Cause(ctx)
		}
	}
	proxy.Lose(faultproxy.Loss{})
	r.Fault("heal", r.Set.Nodes[0].Addr())
	after, ended, err := cpuOf(workers)
	if err != nil {
		return err
	}
	stats := proxy.Stats()
	r.Note("proxy after the storm: %+v", stats)
	for i, w := range workers {
		cores := (after[i] - used[i]).Seconds() / ended.Sub(begun).Seconds()
		r.Note("%s used %.2f cores during the outage", w.Who, cores)
		if cores >= 1 {
			return fmt.Errorf("%s used %.2f cores during the outage, not less than one", w.Who, cores)
		}
	}
	if err := r.Recovered(ctx); err != nil {
		return err
	}
	return r.Drain(ctx, Pick(r, 30*time.Second, 2*time.Minute))
}

// storms is how many kinds of loss a storm goes through.
const storms = 3

// storm has half of all commands fail.
type storm struct {
	mu     sync.Mutex // guards random, which the goroutines of the proxy share
	random *rand.Rand
}

func (s *storm) half(faultproxy.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.random.IntN(2) == 0
}

// losses are the phases of a storm: the server says not now, requests do not reach it, replies do not come back.
func (s *storm) losses() []faultproxy.Loss {
	return []faultproxy.Loss{
		{Match: s.half, Error: "LOADING Redis is loading the dataset in memory"},
		{Match: s.half},
		{Match: s.half, Reply: true},
	}
}

// cpuOf is the processor time that processes have used, and when they were asked.
func cpuOf(processes []*Process) ([]time.Duration, time.Time, error) {
	used := make([]time.Duration, len(processes))
	for i, p := range processes {
		var err error
		if used[i], err = p.CPU(); err != nil {
			return nil, time.Time{}, err
		}
	}
	return used, time.Now(), nil
}
