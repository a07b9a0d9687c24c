package dispatch_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dispatchkit/dispatch"
)

// A task is run at once in a paused queue, beyond its limits, and not again at its old time.
func TestRunTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{})
		handle(d, "k", succeed)
		_, err := d.EnsureQueue(t.Context(), dispatch.Queue{Name: "q", Rate: 0.01, Burst: 1, MaxConcurrent: 1})
		b.ok(err)
		b.ok(d.Start(t.Context()))
		run := func(id dispatch.TaskID, want string) {
			t.Helper()
			b.ok(d.RunTask(t.Context(), "q", id))
			synctest.Wait()
			if got := b.seen.of(id); got != want {
				t.Errorf("task %s: outcomes %q, want %q", id, got, want)
			}
		}
		late := b.enqueue(d, dispatch.Task{Queue: "q", Kind: "k", Delay: time.Hour})
		for range 3 {
			b.enqueue(d, dispatch.Task{Queue: "q", Kind: "k"})
		}
		synctest.Wait() // the burst is used up
		limited := b.enqueue(d, dispatch.Task{Queue: "q", Kind: "k"})
		run(late, "succeeded")
		run(limited, "succeeded")
		b.ok(d.PauseQueue(t.Context(), "q"))
		paused := b.enqueue(d, dispatch.Task{Queue: "q", Kind: "k"})
		time.Sleep(time.Minute)
		run(paused, "succeeded")
		time.Sleep(2 * time.Hour)
		if got := b.seen.of(late); got != "succeeded" {
			t.Errorf("outcomes %q", got)
		}
		b.ok(b.redis.CheckInvariants(t.Context(), "q"))
	})
}

// A failed run waits for its backoff from the call on, and then for the queue to go on.
func TestRunTaskThatFails(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	e.handle("k", func(context.Context, *dispatch.Task) error { return errTest })
	id := e.enqueue(dispatch.Task{Kind: "k", Delay: time.Hour, Retry: &dispatch.RetryConfig{MinBackoff: time.Minute}})
	e.ok(e.d.PauseQueue(t.Context(), dispatch.DefaultQueue))
	e.ok(e.d.RunTask(t.Context(), dispatch.DefaultQueue, id))
	asked := e.task(id).Due
	e.run()
	if info := e.task(id); e.seen.of(id) != "retry" || info.Progress.Attempts != 1 || !info.Due.Equal(asked.Add(time.Minute)) {
		t.Errorf("outcomes %q, attempts %d, due %v after the call", e.seen.of(id), info.Progress.Attempts, info.Due.Sub(asked))
	}
	e.advance(2 * time.Hour)
	if e.seen.of(id) != "retry" {
		t.Errorf("outcomes %q in a paused queue", e.seen.of(id))
	}
	e.ok(e.d.ResumeQueue(t.Context(), dispatch.DefaultQueue))
	e.run()
	if e.seen.of(id) != "retry retry" {
		t.Errorf("outcomes %q", e.seen.of(id))
	}
}

// A task that runs is run anew: its attempt ends without a word, and does not count.
func TestRunTaskThatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{})
		started, causes := stubborn(d)
		b.ok(d.Start(t.Context()))
		id := b.enqueue(d, dispatch.Task{Kind: "k"})
		<-started
		begin := time.Now()
		b.ok(d.RunTask(t.Context(), dispatch.DefaultQueue, id))
		<-started
		if cause := <-causes; !errors.Is(cause, dispatch.ErrLeaseLost) || time.Since(begin) > time.Second {
			t.Errorf("the context ended %v later for %v", time.Since(begin), cause)
		}
		synctest.Wait()
		info, err := d.Task(t.Context(), dispatch.DefaultQueue, id)
		b.ok(err)
		if info.State != dispatch.TaskRunning || info.Progress.Attempts != 0 || b.seen.of(id) != "discarded" {
			t.Errorf("the task is %s after %d attempts, outcomes %q", info.State, info.Progress.Attempts, b.seen.of(id))
		}
	})
}

// A process that cannot run the task leaves it to one that can, paused as the queue is, and does not try again and again.
func TestRunTaskThatOthersKnow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		stranger := b.dispatcher(dispatch.Options{})
		b.ok(stranger.Start(t.Context()))
		id := b.enqueue(stranger, dispatch.Task{Kind: "k"})
		b.ok(stranger.PauseQueue(t.Context(), dispatch.DefaultQueue))
		b.ok(stranger.RunTask(t.Context(), dispatch.DefaultQueue, id))
		time.Sleep(time.Minute)
		// Three whenever it comes back, every 5 s, and at most two for each look at the notes, 4 to 5 s apart.
		if n := b.store.count("Claim"); n > 3*13+2*16 {
			t.Errorf("%d claims in a minute", n)
		}
		knows := b.dispatcher(dispatch.Options{})
		handle(knows, "k", succeed)
		b.ok(knows.Start(t.Context()))
		time.Sleep(10 * time.Second)
		info, err := knows.Counts(t.Context(), dispatch.DefaultQueue)
		b.ok(err)
		if info.TotalSucceeded != 1 {
			t.Errorf("counts %+v", info)
		}
	})
}

func TestRunTaskRefuses(t *testing.T) {
	e := newEnv(t, dispatch.Options{RetentionSucceeded: time.Hour})
	e.d.Handle("k", nothing)
	done := e.enqueue(dispatch.Task{Kind: "k"})
	e.run()
	e.fails(e.d.RunTask(t.Context(), dispatch.DefaultQueue, done), dispatch.ErrTaskEnded)
	e.fails(e.d.RunTask(t.Context(), dispatch.DefaultQueue, "none"), dispatch.ErrTaskNotFound)
	requireField(t, e.d.RunTask(t.Context(), "~", done), "Task.Queue")
	requireField(t, e.d.RunTask(t.Context(), "q", ""), "Task.ID")
}

// A snooze is the handler's own word: the pause holds again.
func TestRunTaskThatSnoozes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{})
		handle(d, "k", func(context.Context, *dispatch.Task) error { return dispatch.Snooze(0) })
		b.ok(d.Start(t.Context()))
		id := b.enqueue(d, dispatch.Task{Kind: "k", Delay: time.Hour})
		b.ok(d.PauseQueue(t.Context(), dispatch.DefaultQueue))
		b.ok(d.RunTask(t.Context(), dispatch.DefaultQueue, id))
		time.Sleep(time.Minute)
		if got := b.seen.of(id); got != "released" {
			t.Errorf("outcomes %q", got)
		}
	})
}

// What nobody here can run does not hide what can be, whichever was asked for first.
func TestRunTaskBesideStrangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{GlobalConcurrency: 1})
		handle(d, "k", succeed)
		b.ok(d.Start(t.Context()))
		known := b.enqueue(d, dispatch.Task{Kind: "k", Delay: time.Hour})
		var strange []dispatch.TaskID
		for range 5 {
			strange = append(strange, b.enqueue(d, dispatch.Task{Kind: "strange", Delay: time.Hour}))
		}
		b.ok(d.PauseQueue(t.Context(), dispatch.DefaultQueue))
		for _, id := range append([]dispatch.TaskID{known}, strange...) {
			b.ok(d.RunTask(t.Context(), dispatch.DefaultQueue, id))
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(30 * time.Second)
		if got := b.seen.of(known); got != "succeeded" {
			t.Errorf("outcomes %q", got)
		}
	})
}
