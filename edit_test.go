package dispatch_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/cluster"
	"github.com/dispatchkit/dispatch/dispatchtest"
)

// What is edited between two attempts is what the next one does; when it is made stays.
func TestEditTask(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	bad, good := dispatchtest.NewReceiver(t, 500), dispatchtest.NewReceiver(t)
	id := e.enqueue(dispatch.Task{URL: bad.URL})
	e.run()
	before := e.task(id)
	e.ok(e.d.EditTask(t.Context(), dispatch.DefaultQueue, id, func(task *dispatch.Task) error {
		if !reflect.DeepEqual(*task, before.Task) {
			t.Errorf("change got %+v, want %+v", *task, before.Task)
		}
		task.URL, task.Payload, task.Timeout = strings.ToUpper(good.URL[:4])+good.URL[4:], []byte("[1]"), time.Minute+time.Microsecond
		task.ID, task.Queue, task.Delay, task.ScheduleTime = "other", "other", -time.Hour, dispatchtest.Start.AddDate(100, 0, 0)
		return nil
	}))
	after := *e.task(id)
	want := *before
	want.URL, want.Payload, want.Timeout = good.URL, []byte("[1]"), time.Minute
	if !reflect.DeepEqual(after, want) {
		t.Errorf("the task is %+v, want %+v", after, want)
	}
	e.advance(time.Second)
	dispatchtest.RequireDelivered(t, good, id, 1)
	if d := good.Deliveries()[0]; d.Attempt != 2 || string(d.Body) != "[1]" || len(bad.Deliveries()) != 1 {
		t.Errorf("delivered %+v", d)
	}
	e.check(dispatch.DefaultQueue)
}

// A task is edited into what could have been enqueued, or not at all.
func TestEditTaskRefuses(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	e.d.Handle("k", nothing)
	id := e.enqueue(dispatch.Task{Kind: "k", Delay: time.Hour})
	before := e.task(id)
	edit := func(change func(*dispatch.Task)) error {
		return e.d.EditTask(t.Context(), dispatch.DefaultQueue, id, func(task *dispatch.Task) error {
			change(task)
			return nil
		})
	}
	for field, change := range map[string]func(*dispatch.Task){
		"Task":         func(task *dispatch.Task) { task.Payload = make([]byte, 1<<20) },
		"Task.Kind":    func(task *dispatch.Task) { task.Kind = strings.Repeat("k", 201) },
		"Task.Timeout": func(task *dispatch.Task) { task.Timeout = time.Millisecond },
		"Task.URL":     func(task *dispatch.Task) { task.Kind, task.URL = "", "ftp://a.example" },
		"Task.Header": func(task *dispatch.Task) {
			*task = dispatch.Task{URL: "http://a.example/", Header: map[string][]string{"Host": {"b"}}}
		},
		"Task.Retry.MaxAttempts": func(task *dispatch.Task) { task.Retry = &dispatch.RetryConfig{MaxAttempts: -2} },
		"Task.Secret":            func(task *dispatch.Task) { task.Secret = "shop" },
		"Task.Requires":          func(task *dispatch.Task) { task.Requires = cluster.Resources{"a b": 1} },
	} {
		requireField(t, edit(change), field)
	}
	e.fails(e.d.EditTask(t.Context(), dispatch.DefaultQueue, id, func(*dispatch.Task) error { return errTest }), errTest)
	if now := e.task(id); !reflect.DeepEqual(now, before) {
		t.Errorf("the task is %+v, before %+v", now, before)
	}

	same := func(*dispatch.Task) error { return nil }
	requireField(t, e.d.EditTask(t.Context(), "~", id, same), "Task.Queue")
	requireField(t, e.d.EditTask(t.Context(), "q", "a b", same), "Task.ID")
	requireField(t, e.d.EditTask(t.Context(), "q", id, nil), "EditTask.change")
	e.fails(e.d.EditTask(t.Context(), dispatch.DefaultQueue, "none", same), dispatch.ErrTaskNotFound)
	dead := e.enqueue(dispatch.Task{Kind: "dead"})
	e.handle("dead", func(context.Context, *dispatch.Task) error { return dispatch.SkipRetry(errTest) })
	e.run()
	e.fails(e.d.EditTask(t.Context(), dispatch.DefaultQueue, dead, same), dispatch.ErrNotWaiting)
}

// Edits made at the same time are all made, one after another; against one that never ends EditTask gives up.
func TestEditTaskConflicts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		c := b.client(dispatch.ClientOptions{})
		id, err := c.Enqueue(t.Context(), dispatch.Task{Kind: "k"})
		b.ok(err)
		calls := 0
		edit := func(change func(*dispatch.Task) error) error {
			return c.EditTask(t.Context(), dispatch.DefaultQueue, id, change)
		}
		grow := func(task *dispatch.Task) error { task.Kind += "."; return nil }
		b.ok(edit(func(task *dispatch.Task) error {
			if calls++; calls < 4 {
				b.ok(edit(grow))
			}
			task.Kind += "!"
			return nil
		}))
		if info, err := c.Task(t.Context(), dispatch.DefaultQueue, id); err != nil || info.Kind != "k...!" || calls != 4 {
			t.Errorf("the kind is %q after %d calls, %v; want k...! after 4", info.Kind, calls, err)
		}
		calls = 0
		requireError(t, edit(func(*dispatch.Task) error { calls++; return edit(grow) }), dispatch.ErrConflict)
		if calls < 2 || calls > 100 {
			t.Errorf("gave up after %d calls", calls)
		}
		// A conflict that change itself reports is an error like any other.
		calls = 0
		requireError(t, edit(func(*dispatch.Task) error { calls++; return dispatch.ErrConflict }), dispatch.ErrConflict)
		if calls != 1 {
			t.Errorf("change was called %d times", calls)
		}
	})
}

// A task that fits nowhere is edited until it fits, and then runs at once; it is not edited into what fits nowhere.
func TestEditTaskRequires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		d := b.dispatcher(dispatch.Options{Capacity: cluster.Resources{"cpu": 4}})
		handle(d, "k", succeed)
		id := b.enqueue(d, needs("k", cluster.Resources{"cpu": 8})) // no worker is there yet
		b.ok(d.Start(t.Context()))
		time.Sleep(time.Minute)
		edit := func(change func(*dispatch.Task)) error {
			return d.EditTask(t.Context(), dispatch.DefaultQueue, id, func(task *dispatch.Task) error {
				change(task)
				return nil
			})
		}
		var none *dispatch.UnschedulableError
		err := edit(func(task *dispatch.Task) { task.Requires["gpu"], task.Requires["cpu"] = 1, 4 })
		if !errors.As(err, &none) || none.Resource != "gpu" {
			t.Errorf("got %v, want an *UnschedulableError of gpu", err)
		}
		b.ok(edit(func(task *dispatch.Task) { task.Payload = []byte("x") }))
		if info, err := d.Task(t.Context(), dispatch.DefaultQueue, id); err != nil || info.Requires["cpu"] != 8 || string(info.Payload) != "x" {
			t.Errorf("the task is %+v, %v", info, err)
		}
		b.ok(edit(func(task *dispatch.Task) { task.Requires["cpu"] = 4 }))
		synctest.Wait()
		if got := b.seen.of(id); got != "succeeded" {
			t.Errorf("outcomes %q", got)
		}
	})
}
