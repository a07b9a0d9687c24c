package main

import (
	"context"
	"fmt"
	"math/rand/v2"
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
	phases := storm(rand.New(rand.NewPCG(r.Rand.Uint64(), 0)))
	workers, err := r.Workers(ctx, 2, WorkerConfig{LeaseGrace: 10 * time.Second, Stale: 30 * time.Second})
	if err != nil {
		return err
	}
	used, begun, err := cpuOf(workers)
	if err != nil {
		return err
	}
	r.Fault("loss", r.Set.Nodes[0].Addr())
	for _, l := range phases {
		proxy.Lose(l)
		if !Sleep(ctx, lasts/time.Duration(len(phases))) {
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

// storm is the phases in which half of all commands fail: the server says not now, requests do not reach it, replies do not come
// back.
func storm(random *rand.Rand) []faultproxy.Loss {
	half := func(faultproxy.Request) bool { return random.IntN(2) == 0 } // of one proxy, which asks one at a time
	return []faultproxy.Loss{
		{Match: half, Error: "LOADING Redis is loading the dataset in memory"},
		{Match: half},
		{Match: half, Reply: true},
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
