package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

func hostileInput() Scenario {
	return Scenario{
		Name: "hostile-input",
		Doc: "every wrong call, and tasks of random bytes; then junk and msgpack bombs in the keys of queues and of the fleet, in messages, " +
			"and entries that contradict each other: calls are refused by name and leave nothing, workers live on without using much, other " +
			"queues go on, and torn entries are repaired",
		Bound: Bound{Recovery: 3 * time.Second, Duplicates: anyNumber, Unexplained: anyNumber},
		Run:   runHostileInput,
	}
}

// The queues of hostile-input beside poisonedQueues.
const (
	victimQueue = "victim" // of wrong calls; it never comes to be
	limboQueue  = "limbo"  // nobody serves it
	hostileFlow = "mail"   // goes on
	tornQueue   = "torn"   // has entries that contradict each other
	sweptQueue  = "swept"  // has some that a sweep comes upon
)

const (
	hostileMemory = 192 << 20        // bytes that a worker may have in use at most
	hostileCores  = 0.9              // that a worker may use while there is junk
	mendBound     = 20 * time.Second // until torn entries are repaired and have run, from the death of a worker on
)

// hostile is a run of hostile-input.
type hostile struct {
	*Run
	poisoners []poisoner
	insults   int
	torn      []tornTask
}

func runHostileInput(ctx context.Context, r *Run) error {
	h := &hostile{Run: r, poisoners: poisoners}
	raw, err := r.Raw()
	if err != nil {
		return err
	}
	defer raw.Close()
	served := append([]string{hostileFlow, tornQueue, sweptQueue, victimQueue}, poisonedQueues...)
	workers, err := r.Workers(ctx, 2, WorkerConfig{Queues: served})
	if err != nil {
		return err
	}
	if err := h.insult(ctx); err != nil {
		return err
	}
	r.Note("%d wrong calls were refused", h.insults)
	if err := h.babble(ctx, r.Rand, Pick(r, 1_000, 20_000)); err != nil {
		return err
	}
	producer, err := r.Producer(ctx, Load{
		Queues: []string{hostileFlow}, Rate: 100, Seed: r.Rand.Uint64(), Work: 20 * time.Millisecond, FlakyShare: 0.1, NamedShare: 0.1, DelayShare: 0.1, Delay: time.Second,
	})
	if err != nil {
		return err
	}
	if err := h.tear(ctx, raw); err != nil {
		return err
	}
	used, begun, err := cpuOf(workers)
	if err != nil {
		return err
	}
	for range Pick(r, 1, 10) {
		if err := h.poison(ctx, raw); err != nil {
			return err
		}
		if err := h.others(ctx); err != nil {
			return err
		}
		if !Sleep(ctx, 3*time.Second) {
			return context.Cause(ctx)
		}
	}
	after, ended, err := cpuOf(workers)
	if err != nil {
		return err
	}
	for i, w := range workers {
		cores, memory := (after[i]-used[i]).Seconds()/ended.Sub(begun).Seconds(), int64(0)
		if memory, err = w.Memory(); err != nil {
			return fmt.Errorf("%s is gone: %w", w.Who, err)
		}
		r.Note("%s used %.2f cores, and %d MiB at most", w.Who, cores, memory>>20)
		if cores > hostileCores || memory > hostileMemory {
			return fmt.Errorf("resources: %s used %.2f cores and %d MiB", w.Who, cores, memory>>20)
		}
	}
	if err := h.hurry(ctx, workers[0], served); err != nil {
		return err
	}
	if err := h.mended(ctx, raw, mendBound); err != nil {
		return err
	}
	if err := h.clean(ctx, raw); err != nil {
		return err
	}
	if err := producer.Finish(ctx); err != nil {
		return err
	}
	return r.Drain(ctx, 15*time.Second)
}

// hurry replaces a worker by killing it: after a death the leader looks at all queues at once, instead of one in four seconds.
func (h *hostile) hurry(ctx context.Context, w *Process, queues []string) error {
	w.Kill()
	_, err := h.Worker(ctx, WorkerConfig{Queues: queues})
	return err
}

// others makes sure that the queues that nobody has spoiled go on.
func (h *hostile) others(ctx context.Context) error {
	healed := time.Now()
	var tasks []lone
	for _, queue := range []string{hostileFlow, probeQueue} {
		t, err := h.lone(ctx, h.client, queue, 0)
		if err != nil {
			return err
		}
		tasks = append(tasks, t)
	}
	took, err := h.awaitStarts(ctx, tasks, healed, h.bound.Recovery)
	h.Took(took)
	return err
}

// keys are those of all queues, as one text.
func (h *hostile) keys(ctx context.Context) (string, error) {
	raw, err := h.Raw()
	if err != nil {
		return "", err
	}
	defer raw.Close()
	all, err := raw.Keys(ctx, "*").Result()
	var queues []string
	for _, k := range all {
		if !strings.HasPrefix(k, prefix+":{~}:") {
			queues = append(queues, k)
		}
	}
	return strings.Join(queues, " "), err
}
