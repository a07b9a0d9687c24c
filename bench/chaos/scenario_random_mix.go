package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

func randomMix() Scenario {
	return Scenario{
		Name: "random-mix",
		Doc: "faults of all kinds that one server, its network and its clients can have, in random order and for random times, under " +
			"load: every acknowledged task ends, and no attempt is taken for another",
		AOF:   true,
		Bound: Bound{Recovery: 8 * time.Second, Duplicates: anyNumber, Unexplained: anyNumber},
		Run:   runRandomMix,
	}
}

// longWork is how long tasks work that somebody may lose meanwhile. Their timeout is 2 s.
const longWork = 1500 * time.Millisecond

// quickFaults is how many faults the quick form has.
const quickFaults = 7

// mix is a run of random-mix.
type mix struct {
	*Run
	config  WorkerConfig
	workers []*Process
}

// runRandomMix draws faults from a bag that is filled again when it is empty, so that each kind comes before any comes twice. The
// quick form draws some, and always begins with the owner that comes back late.
func runRandomMix(ctx context.Context, r *Run) error {
	m := &mix{Run: r, config: WorkerConfig{OwnProxy: true}}
	var err error
	if m.workers, err = r.Workers(ctx, 2+r.Rand.IntN(2), m.config); err != nil {
		return err
	}
	producer, err := r.Producer(ctx, Load{
		Queues: []string{"mail", "report", "image"}, Rate: 200, Batch: 2, Seed: r.Rand.Uint64(), Work: 40 * time.Millisecond,
		LongShare: 0.03, LongWork: longWork, FlakyShare: 0.1, SnoozeShare: 0.05, FatalShare: 0.02,
		NamedShare: 0.1, ExtendShare: 0.05, DelayShare: 0.1, Delay: 2 * time.Second,
	})
	if err != nil {
		return err
	}
	bag := r.Rand.Perm(len(mixFaults))
	if r.Quick {
		always := slices.Index(bag, frozenOwner)
		bag[0], bag[always] = bag[always], bag[0]
		bag = bag[:quickFaults]
	}
	for until := time.Now().Add(Pick(r, 0, r.Length)); len(bag) > 0; bag = bag[1:] {
		if !Sleep(ctx, m.between(200, 1000)) { // there is work to be hit
			return context.Cause(ctx)
		}
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
	if err := producer.Finish(ctx); err != nil {
		return err
	}
	return r.Drain(ctx, 30*time.Second)
}
