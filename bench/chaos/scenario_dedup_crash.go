package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/bench/chaos/audit"
	"github.com/dispatchkit/dispatch/bench/chaos/faultproxy"
)

func dedupCrash() Scenario {
	return Scenario{
		Name: "dedup-crash",
		Doc: "producers of named tasks are killed, or lose a request or a reply, at every step of an enqueue, and others repeat all their " +
			"names: each name runs once, and is free again when its window is over",
		Bound: Bound{Duplicates: func(*Run) int { return 1 }}, // the one of briefQueue, whose name is free again: see brief
		Run:   runDedupCrash,
	}
}

// dedupStep is where an enqueue is interrupted.
type dedupStep struct {
	name, script string
	reply        bool // the script runs, and its reply is lost; otherwise the request is
	unsaid       bool // what was stored has not been announced by then
}

var dedupSteps = []dedupStep{
	{name: "before the script", script: "enqueue"},
	{name: "after the script", script: "enqueue", reply: true, unsaid: true},
	{name: "before the announcement", script: "announce", unsaid: true},
	{name: "after the announcement", script: "announce", reply: true},
}

// briefQueue has tasks whose names are soon free again.
const briefQueue = "brief"

// dedupLoad is a load, and whether its producer died after it had stored and before it had announced.
type dedupLoad struct {
	Load
	unsaid bool
}

// dedupRun is a run of dedup-crash.
type dedupRun struct {
	*Run
	book  scriptBook
	loads []dedupLoad // all, to be repeated
}

func runDedupCrash(ctx context.Context, r *Run) error {
	d := &dedupRun{Run: r}
	r.Set.Primary().Proxy().Lose(faultproxy.Loss{Match: d.learn})
	if _, err := r.Set.Primary().Command("SCRIPT", "FLUSH"); err != nil { // each comes by with its text once more
		return err
	}
	if _, err := r.Workers(ctx, 2, WorkerConfig{}); err != nil {
		return err
	}
	if _, err := r.client.Enqueue(ctx, Work{}.Task(probeQueue)); err != nil {
		return err
	}
	for range Pick(r, 1, 12) {
		for _, i := range r.Rand.Perm(2 * len(dedupSteps)) {
			step, kill := dedupSteps[i/2], i%2 == 0
			if err := d.interrupt(ctx, step, kill); err != nil {
				return fmt.Errorf("%s, with a kill: %v: %w", step.name, kill, err)
			}
		}
	}
	for _, l := range d.loads {
		// What nobody has announced is announced by who enqueues to its queue later; for one queue a second.
		if l.unsaid && !Sleep(ctx, 1100*time.Millisecond) {
			return context.Cause(ctx)
		}
		if err := r.Produce(ctx, l.Load); err != nil {
			return err
		}
	}
	if err := d.brief(ctx); err != nil {
		return err
	}
	if err := r.Drain(ctx, 20*time.Second); err != nil {
		return err
	}
	return d.judge()
}

// learn reads the names of scripts from what goes by, and matches nothing.
func (d *dedupRun) learn(q faultproxy.Request) bool { d.book.name(q); return false }

// interrupt has one producer run into a fault, and a second one repeat its names: at once after a kill, because the script of
// the dead may still be under way then.
func (d *dedupRun) interrupt(ctx context.Context, step dedupStep, kill bool) error {
	load := Load{
		Queues: []string{fmt.Sprintf("orders-%d", len(d.loads))}, Tasks: 40, Rate: 300, Batch: 1 + 4*d.Rand.IntN(2), Seed: d.Rand.Uint64(), NamedShare: 1,
		Names: fmt.Sprintf("load%d", len(d.loads)), Work: 10 * time.Millisecond, DelayShare: 0.2, Delay: 500 * time.Millisecond,
		Timeout: 20 * time.Second,
	}
	d.loads = append(d.loads, dedupLoad{load, kill && step.unsaid})
	proxy, err := d.Proxy()
	if err != nil {
		return err
	}
	left := 1 + d.Rand.IntN(max(1, 20/load.Batch)) // calls of the script until it is hit
	if step.script == "announce" {
		left = 1 // that of the first task of a queue; others need none as long as there is one before them
	}
	born, hit := make(chan *Process, 1), make(chan struct{})
	proxy.Lose(faultproxy.Loss{Reply: step.reply, Times: 1, Match: func(q faultproxy.Request) bool {
		if d.book.name(q) != step.script {
			return false
		}
		if left--; left > 0 {
			return false
		}
		close(hit)
		if kill {
			(<-born).Kill()
		}
		return true
	}})
	p, err := d.ProducerBehind(ctx, proxy, load)
	if err != nil {
		return err
	}
	born <- p
	select {
	case <-hit:
	case <-p.done:
		return fmt.Errorf("%s has ended before its fault came", p.Who)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	d.Note("%s: %s was hit, and killed: %v", step.name, p.Who, kill)
	if kill {
		<-p.done
	} else if err := p.Wait(ctx); err != nil {
		return err
	}
	second, err := d.Producer(ctx, load)
	if err != nil {
		return err
	}
	return second.Wait(ctx)
}

// brief enqueues tasks whose names are taken for a window after their end and no longer: they are refused within it and stored
// after it, and nothing is left of them.
func (d *dedupRun) brief(ctx context.Context) error {
	const window = 1500 * time.Millisecond
	raw, err := d.Raw()
	if err != nil {
		return err
	}
	defer raw.Close()
	task := Work{}.Task(briefQueue)
	task.Unique = &dispatch.Unique{Key: "one", Window: window}
	id, err := d.client.Enqueue(ctx, task)
	if err != nil {
		return err
	}
	begun := time.Now() // the task has not ended sooner than it was stored, so its name is taken for the window at least
	refused := 0
	err = Until(ctx, 2*window+3*time.Second, "a name whose window is over is free", func() (bool, error) {
		_, err := d.client.Enqueue(ctx, task)
		switch {
		case err == nil:
			return true, nil
		case !errors.Is(err, dispatch.ErrDuplicateTask):
			return false, err
		}
		refused++
		return false, nil
	})
	if err != nil {
		return err
	}
	if took := time.Since(begun); took < window || refused == 0 {
		return fmt.Errorf("duplicate: name %s was free after %v, %v before its window was over", id, took, window-took)
	}
	return Until(ctx, window+8*time.Second, "leftover: names of queue "+briefQueue+" are gone", func() (bool, error) {
		n, err := raw.Exists(ctx, key(briefQueue, "names"), key(briefQueue, "tasks")).Result()
		return n == 0, err
	})
}

// judge finds names that did not run exactly once, and repetitions that were not refused.
func (d *dedupRun) judge() error {
	ledger, err := d.Ledger()
	if err != nil {
		return err
	}
	names := 0
	for _, l := range d.loads {
		names += l.Tasks
	}
	ours := func(e audit.Event) bool { return strings.HasPrefix(e.ID, "named-load") }
	ran := 0
	for task, starts := range ledger.starts() {
		switch {
		case !ours(starts[0]):
		case len(starts) > 1:
			return fmt.Errorf("duplicate: name %s ran %d times", task.ID, len(starts))
		default:
			ran++
		}
	}
	if ran != names {
		return fmt.Errorf("lost: of %d names %d ran", names, ran)
	}
	for _, e := range ledger.Events {
		if e.Kind == audit.KindAck && e.Who == "main" && ours(e) && e.Result != audit.AckDuplicate {
			return fmt.Errorf("duplicate: name %s was enqueued again, and the answer was %s", e.ID, e.Result)
		}
	}
	return nil
}
