package main

import (
	"context"
	"fmt"
	"time"
)

func randomMix() Scenario {
	return Scenario{
		Name: "random-mix",
		Doc: "faults of all kinds that one server, its network and its clients can have, in random order and for random times, under " +
			"load: every acknowledged task ends, and no attempt is taken for another",
		AOF:   true,
		Bound: Bound{Recovery: 8 * time.Second, Duplicates: func(*Run) int { return -1 }},
		Run:   runRandomMix,
	}
}

// quickFaults is how many faults the quick form has.
const quickFaults = 12

// mix is a run of random-mix.
type mix struct {
	*Run
	config  WorkerConfig
	workers []*Process
}

// runRandomMix draws faults from a bag that is filled again when it is empty, so that each kind comes before any comes twice. The
// quick form draws some.
func runRandomMix(ctx context.Context, r *Run) error {
	m := &mix{Run: r, config: WorkerConfig{OwnProxy: true}}
	var err error
	if m.workers, err = r.Workers(ctx, 2+r.Rand.IntN(2), m.config); err != nil {
		return err
	}
	producer, err := r.Producer(ctx, Load{
		Queues: []string{"mail", "report", "image"}, Rate: 200, Batch: 2, Seed: r.Rand.Uint64(), Work: 40 * time.Millisecond,
		LongShare: 0.02, LongWork: 1500 * time.Millisecond, FlakyShare: 0.1, SnoozeShare: 0.05, FatalShare: 0.02,
		NamedShare: 0.1, ExtendShare: 0.05, DelayShare: 0.1, Delay: 2 * time.Second,
	})
	if err != nil {
		return err
	}
	bag := r.Rand.Perm(len(mixFaults))
	if r.Quick {
		bag = bag[:quickFaults]
	}
	for until := time.Now().Add(Pick(r, 0, r.Length)); len(bag) > 0; bag = bag[1:] {
		fault := mixFaults[bag[0]]
		r.Note("next is %s", fault.name)
		if err := fault.make(m, ctx); err != nil {
			return fmt.Errorf("%s: %w", fault.name, err)
		}
		if err := r.Recovered(ctx); err != nil {
			return fmt.Errorf("after %s: %w", fault.name, err)
		}
		if len(bag) == 1 && time.Now().Before(until) {
			bag = append(bag, r.Rand.Perm(len(mixFaults))...)
		}
	}
	if err := producer.Term(); err != nil {
		return err
	}
	if err := producer.Wait(ctx); err != nil {
		return err
	}
	return r.Drain(ctx, 30*time.Second)
}
