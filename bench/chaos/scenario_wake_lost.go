package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/bench/chaos/audit"
	"github.com/dispatchkit/dispatch/bench/chaos/faultproxy"
)

func wakeLost() Scenario {
	return Scenario{
		Name: "wake-lost",
		Doc: "lone tasks of an idle fleet whose producer is slow to get through, or whose message finds the workers deaf, or whose producer " +
			"dies before it sends one: each starts within the bound all the same",
		Bound: Bound{Recovery: 2 * time.Second},
		Run:   runWakeLost,
	}
}

// wakeRun is a run of wake-lost.
type wakeRun struct {
	*Run
	book    scriptBook
	workers []*Process
	named   int // tasks of producers that died
}

func runWakeLost(ctx context.Context, r *Run) (err error) {
	w := &wakeRun{Run: r}
	r.Set.Primary().Proxy().Lose(faultproxy.Loss{Match: func(q faultproxy.Request) bool { w.book.name(q); return false }})
	if _, err := r.Set.Primary().Command("SCRIPT", "FLUSH"); err != nil { // each comes by with its text once more
		return err
	}
	if w.workers, err = r.Workers(ctx, 3, WorkerConfig{OwnProxy: true}); err != nil {
		return err
	}
	steps := []wakeStep{
		{"slow", w.slow, queuesOfStep("slow", 4)},
		{"deaf", w.deaf, queuesOfStep("deaf", 4)},
		{"unsaid", w.unsaid, queuesOfStep("unsaid", 2)},
	}
	for range Pick(r, 1, 10) {
		var all []string
		for _, step := range steps {
			all = append(all, step.queues...)
		}
		if err := r.idle(ctx, all); err != nil {
			return err
		}
		for _, step := range steps {
			tasks, healed, err := step.do(ctx, step.queues)
			if err != nil {
				return fmt.Errorf("%s: %w", step.name, err)
			}
			took, err := r.awaitStarts(ctx, tasks, healed, r.bound.Recovery)
			if err != nil {
				return fmt.Errorf("lost wake-up: %s: %w", step.name, err)
			}
			r.Note("%s: the slowest started after %v", step.name, took)
			r.Took(took)
		}
	}
	return r.Drain(ctx, 10*time.Second)
}

// wakeStep is one way to lose a message. do enqueues a task to each queue and returns them with when the fault was over.
type wakeStep struct {
	name   string
	do     func(ctx context.Context, queues []string) ([]lone, time.Time, error)
	queues []string
}

func queuesOfStep(name string, n int) []string {
	queues := make([]string, n)
	for i := range queues {
		queues[i] = fmt.Sprintf("%s-%d", name, i)
	}
	return queues
}

// slow has the tasks of a producer arrive seconds after their calls began, at different times. If they were announced before they
// are there, the workers would have looked, found nothing and noted that by then.
func (w *wakeRun) slow(ctx context.Context, queues []string) ([]lone, time.Time, error) {
	proxy, err := w.Proxy()
	if err != nil {
		return nil, time.Time{}, err
	}
	store, err := w.StoreAt(ctx, proxy.URL())
	if err != nil {
		return nil, time.Time{}, err
	}
	client, err := w.ClientOf(store, dispatch.ClientOptions{})
	if err != nil {
		return nil, time.Time{}, err
	}
	w.Fault("loss", "main")
	proxy.Lose(faultproxy.Loss{Match: func(q faultproxy.Request) bool { return w.book.name(q) == "enqueue" }})
	tasks, errs := make([]lone, len(queues)), make([]error, len(queues))
	var wait sync.WaitGroup
	for i, queue := range queues {
		wait.Go(func() { tasks[i], errs[i] = w.lone(ctx, client, queue, 0) })
	}
	ok := Sleep(ctx, 4200*time.Millisecond) // longer than the time after which notes are put right; a call has 5 s
	proxy.Lose(faultproxy.Loss{})
	wait.Wait()
	w.Fault("heal", "main")
	for _, err := range errs {
		if err != nil {
			return nil, time.Time{}, err
		}
	}
	if lost := proxy.Stats().LostRequests; lost < int64(len(queues)) {
		return nil, time.Time{}, fmt.Errorf("%d requests were lost, fewer than there are tasks", lost)
	}
	return tasks, time.Time{}, unless(ctx, ok)
}

// deaf has the workers hear nothing while tasks are announced.
func (w *wakeRun) deaf(ctx context.Context, queues []string) (tasks []lone, healed time.Time, err error) {
	for _, p := range w.workers {
		w.Fault("half-open", p.Who)
		p.Proxy().HalfOpen(true)
	}
	for _, queue := range queues {
		t, err := w.lone(ctx, w.client, queue, 0)
		if err != nil {
			return nil, healed, err
		}
		tasks = append(tasks, t)
	}
	ok := Sleep(ctx, time.Duration(300+w.Rand.IntN(1200))*time.Millisecond) // less than their leases, of which they do not know
	for _, p := range w.workers {
		p.Proxy().HalfOpen(false)
		w.Fault("heal", p.Who)
	}
	return tasks, time.Now(), unless(ctx, ok)
}

// unsaid has producers die after they have stored a task and before they have announced it. Somebody else who uses the queue, here
// for a task that is due much later, announces what is overdue.
func (w *wakeRun) unsaid(ctx context.Context, queues []string) (tasks []lone, healed time.Time, err error) {
	for _, queue := range queues {
		w.named++
		name := fmt.Sprintf("%s-%d", queue, w.named)
		if err := w.dieUnsaid(ctx, queue, name); err != nil {
			return nil, healed, err
		}
		tasks = append(tasks, lone{queue, dispatch.TaskID("named-" + name + "-0"), time.Now()})
	}
	if !Sleep(ctx, 1100*time.Millisecond) {
		return nil, healed, context.Cause(ctx)
	}
	healed = time.Now()
	for _, queue := range queues {
		later, err := w.lone(ctx, w.client, queue, time.Hour)
		if err != nil {
			return nil, healed, err
		}
		if err := w.client.DeleteTask(ctx, queue, later.id); err != nil {
			return nil, healed, err
		}
		if !Sleep(ctx, 1100*time.Millisecond) { // a client announces one such queue a second
			return nil, healed, context.Cause(ctx)
		}
	}
	return tasks, time.Now(), nil
}

// dieUnsaid starts a producer of one task that is killed when it announces it.
func (w *wakeRun) dieUnsaid(ctx context.Context, queue, name string) error {
	proxy, err := w.Proxy()
	if err != nil {
		return err
	}
	born, hit := make(chan *Process, 1), make(chan struct{})
	proxy.Lose(faultproxy.Loss{Times: 1, Match: func(q faultproxy.Request) bool {
		if w.book.name(q) != "announce" {
			return false
		}
		close(hit)
		(<-born).Kill()
		return true
	}})
	p, err := w.ProducerBehind(ctx, proxy, Load{
		Queues: []string{queue}, Tasks: 1, Seed: 1, NamedShare: 1, Names: name,
	})
	if err != nil {
		return err
	}
	born <- p
	select {
	case <-hit:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	<-p.done
	ledger, err := w.Ledger()
	if err != nil {
		return err
	}
	for _, e := range ledger.Events {
		if e.Kind == audit.KindAck && e.Who == p.Who {
			return fmt.Errorf("%s had an answer before its announcement", p.Who)
		}
	}
	return nil
}
