package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/cluster"
)

// badNames are what no queue, task or cron entry can be called.
var badNames = []string{
	"{a}", "a{b}c", "}", "~", "{~}", "a b", "a\x00b", "a\r\nSET x y\r\n", "../../etc/passwd", "a:b", "a*", "[a-z]", "é", "\u202e", "\xff\xfe",
	"<script>", strings.Repeat("a", 501), strings.Repeat("a", 1<<20),
}

// badTasks are mistakes of a task that would be good otherwise.
func badTasks() map[string]func(t *dispatch.Task) {
	to := func(set func(*dispatch.Task, string), values ...string) []func(*dispatch.Task) {
		var out []func(*dispatch.Task)
		for _, v := range values {
			out = append(out, func(t *dispatch.Task) { set(t, v) })
		}
		return out
	}
	all := map[string]func(t *dispatch.Task){}
	many := func(name string, mistakes []func(*dispatch.Task)) {
		for i, m := range mistakes {
			all[fmt.Sprint(name, " ", i)] = m
		}
	}
	many("queue", to(func(t *dispatch.Task, v string) { t.Queue = v }, badNames...))
	many("ID", to(func(t *dispatch.Task, v string) { t.ID = dispatch.TaskID(v) }, badNames...))
	many("kind", to(func(t *dispatch.Task, v string) { t.Kind = v }, "", "a\x00", "a\nb", "\xff", strings.Repeat("k", 201)))
	target := func(t *dispatch.Task, url string) { t.Kind, t.URL = "", url }
	many("URL", to(target,
		"ftp://example.com/", "javascript:alert(1)", "file:///etc/passwd", "//example.com", "http://", "http:///path", "example.com",
		"http://user:password@example.com/", "http://example.com\\@evil.com/", "http://example.com/\r\nHost: evil", "http://example.com/#x",
		"http://example.com:0/", "http://example.com:99999/", "http://example.com:port/", "http://ｅxample.com/", "http://[::1", "http://a b/",
		"http://example.com/%zz", "http://example.com/"+strings.Repeat("a", 2083), "http://example.com/\x00"))
	header := func(name, value string) func(*dispatch.Task) {
		return func(t *dispatch.Task) {
			target(t, "http://example.com/")
			t.Header = http.Header{name: {value}}
		}
	}
	many("header", []func(*dispatch.Task){
		header("A", "b\r\nC: d"), header("A", "b\x00"), header("A b", "c"), header("A:", "b"), header("", "b"), header("A\r\nB", "c"),
		header("Host", "evil"), header("Content-Length", "5"), header("Transfer-Encoding", "chunked"), header("Connection", "close"),
		header("tE", "trailers"), header("Upgrade", "h2c"), header("Proxy-Authorization", "x"), header("X-Dispatch-Task-Id", "x"),
		header("X_Dispatch_Queue", "x"), header("A", strings.Repeat("b", 80<<10)), header("é", "a"),
	})
	many("method", to(func(t *dispatch.Task, v string) { target(t, "http://example.com/"); t.Method = v }, "get", "CONNECT", "TRACE", "GET / HTTP/1.1\r\n"))
	many("payload", []func(*dispatch.Task){
		func(t *dispatch.Task) { t.Payload = make([]byte, 1<<20) },
		func(t *dispatch.Task) { t.Payload = make([]byte, 16<<20) },
		func(t *dispatch.Task) { target(t, "http://example.com/"); t.Method, t.Payload = "GET", []byte("x") },
		func(t *dispatch.Task) { t.Metadata = map[string]string{"a": strings.Repeat("b", 1<<20)} },
		func(t *dispatch.Task) { t.Metadata = map[string]string{"x-dispatch-dead-letter-queue": "b"} },
	})
	many("times", []func(*dispatch.Task){
		func(t *dispatch.Task) { t.Delay = -1 },
		func(t *dispatch.Task) { t.Delay = math.MaxInt64 },
		func(t *dispatch.Task) { t.Delay, t.ScheduleTime = time.Hour, time.Now() },
		func(t *dispatch.Task) { t.ScheduleTime = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC) },
		func(t *dispatch.Task) { t.Timeout = -1 },
		func(t *dispatch.Task) { t.Timeout = time.Millisecond },
		func(t *dispatch.Task) { t.Timeout = math.MaxInt64 },
		func(t *dispatch.Task) { t.Retention = math.MaxInt64 },
		func(t *dispatch.Task) { t.Retry = &dispatch.RetryConfig{MaxAttempts: math.MinInt} },
		func(t *dispatch.Task) { t.Retry = &dispatch.RetryConfig{Jitter: math.NaN()} },
		func(t *dispatch.Task) { t.Retry = &dispatch.RetryConfig{Jitter: math.Inf(1)} },
		func(t *dispatch.Task) { t.Retry = &dispatch.RetryConfig{MaxBackoff: math.MaxInt64} },
	})
	many("others", []func(*dispatch.Task){
		func(t *dispatch.Task) { t.Secret = "whsec_c2VjcmV0" },
		func(t *dispatch.Task) { t.Requires = cluster.Resources{"a b": 1} },
		func(t *dispatch.Task) { t.Requires = cluster.Resources{"cpu": -1} },
		func(t *dispatch.Task) { t.Unique = &dispatch.Unique{Key: strings.Repeat("k", 2<<10)} },
		func(t *dispatch.Task) { t.URL = "http://example.com/" },
	})
	return all
}

// insult makes every wrong call there is. Each must be refused by name, and none may leave anything.
func (h *hostile) insult(ctx context.Context) error {
	before, err := h.keys(ctx)
	if err != nil {
		return err
	}
	c := h.client.Client // what is refused need not be in the ledger
	for name, spoil := range badTasks() {
		t := Work{}.Task(victimQueue)
		spoil(&t)
		if err := h.refused(name, func() error { _, err := c.Enqueue(ctx, t); return err }); err != nil {
			return err
		}
		err := h.refused(name+" of many", func() error {
			results, err := c.EnqueueMany(ctx, []dispatch.Task{t, t})
			if err != nil {
				return err
			}
			return results[1].Err
		})
		if err != nil {
			return err
		}
	}
	for _, name := range append([]string{""}, badNames...) {
		id := dispatch.TaskID(name)
		for what, call := range map[string]func() error{
			"Task":           func() error { _, err := c.Task(ctx, name, "a"); return err },
			"Task by ID":     func() error { _, err := c.Task(ctx, victimQueue, id); return err },
			"CancelTask":     func() error { return c.CancelTask(ctx, name, id) },
			"DeleteTask":     func() error { return c.DeleteTask(ctx, victimQueue, id) },
			"RunTask":        func() error { return c.RunTask(ctx, victimQueue, id) },
			"RescheduleTask": func() error { return c.RescheduleTask(ctx, name, "a", time.Time{}) },
			"ReplayTasks": func() error {
				_, err := c.ReplayTasks(ctx, victimQueue, []dispatch.TaskID{"a", id}, dispatch.ReplayOptions{})
				return err
			},
			"EditTask":    func() error { return c.EditTask(ctx, name, "a", func(*dispatch.Task) error { return nil }) },
			"EnsureQueue": func() error { _, err := c.EnsureQueue(ctx, dispatch.Queue{Name: name}); return err },
			"PauseQueue":  func() error { return c.PauseQueue(ctx, name) },
			"PurgeQueue":  func() error { return c.PurgeQueue(ctx, name) },
			"DeleteQueue": func() error { return c.DeleteQueue(ctx, name) },
			"Counts":      func() error { _, err := c.Counts(ctx, name); return err },
			"Schedule": func() error {
				return c.Schedule(ctx, dispatch.Entry{Name: name, Spec: "@hourly", Task: Work{}.Task(victimQueue)})
			},
			"Schedule by spec": func() error {
				return c.Schedule(ctx, dispatch.Entry{Name: "a", Spec: name, Task: Work{}.Task(victimQueue)})
			},
		} {
			if err := h.refused(fmt.Sprintf("%s of %.20q", what, name), call); err != nil {
				return err
			}
		}
	}
	for what, q := range map[string]dispatch.Queue{
		"rate": {Rate: math.NaN()}, "endless rate": {Rate: math.Inf(1)}, "negative rate": {Rate: -5}, "burst": {Burst: -1},
		"concurrency": {MaxConcurrent: math.MaxInt}, "weight": {Weight: -1}, "age": {TaskTTL: 1}, "letters": {DeadLetterQueue: "{a}"},
		"loop": {DeadLetterQueue: victimQueue}, "secret": {Secret: "whsec_x"},
	} {
		q.Name = victimQueue
		if err := h.refused("queue with a bad "+what, func() error { _, err := c.EnsureQueue(ctx, q); return err }); err != nil {
			return err
		}
	}
	after, err := h.keys(ctx)
	if err == nil && after != before {
		err = fmt.Errorf("leftover: refused calls have left keys: %s; before them there were %s", after, before)
	}
	return err
}

// refused makes a call that must be refused with an error that names the field.
func (h *hostile) refused(what string, call func() error) error {
	var field *dispatch.FieldError
	h.insults++
	if err := call(); !errors.As(err, &field) {
		return fmt.Errorf("%s: got %v, and no FieldError", what, err)
	}
	return nil
}

// babble enqueues tasks of random bytes. Each must be stored or refused by name; what is stored is in a queue that nobody serves.
func (h *hostile) babble(ctx context.Context, random *rand.Rand, n int) error {
	alphabet := []string{"a", "Z", "0", "-", "_", ".", "/", ":", "{", "}", "~", " ", "\x00", "\r", "\n", "\xff", "é", "\u202e", "%", "http://", "?", "#", "@", "\\"}
	text := func() string {
		var b strings.Builder
		for range random.IntN(12) {
			b.WriteString(alphabet[random.IntN(len(alphabet))])
		}
		return b.String()
	}
	var field *dispatch.FieldError
	stored := 0
	for range n {
		t := dispatch.Task{Queue: limboQueue, Kind: text(), Payload: []byte(text()), Metadata: map[string]string{text(): text()}}
		if random.IntN(2) == 0 {
			t.Kind, t.URL, t.Header = "", "http://"+text(), http.Header{text(): {text()}}
		}
		switch _, err := h.client.Client.Enqueue(ctx, t); {
		case err == nil:
			stored++
		case !errors.As(err, &field):
			return fmt.Errorf("task %+v: %w", t, err)
		}
	}
	h.Note("of %d tasks of random bytes %d were taken", n, stored)
	for t, err := range h.client.Tasks(ctx, limboQueue, dispatch.Filter{}) {
		if err != nil {
			return fmt.Errorf("list of random tasks: %w", err)
		}
		if t.Err != nil {
			return fmt.Errorf("task %s came back torn: %w", t.ID, t.Err)
		}
		if stored--; t.Kind == "" && t.URL == "" {
			return fmt.Errorf("task %s came back without what it is to do", t.ID)
		}
	}
	if stored > 0 {
		return fmt.Errorf("lost: %d random tasks are not listed", stored)
	}
	return h.client.Client.DeleteQueue(ctx, limboQueue)
}
