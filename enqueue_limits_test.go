package dispatch_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/dispatchtest"
)

// The limits of spec/http-push.md, section 11.12: what is at the limit is stored as it is, and what is one beyond it is
// refused by name, with nothing stored, by Enqueue and EnqueueMany alike.
func TestLimitsOfEnqueue(t *testing.T) {
	const tenYears = 10 * 366 * 24 * time.Hour
	const url = "https://a.example/"
	long := strings.Repeat
	for _, c := range []struct {
		name  string
		field string
		at    dispatch.Task
		over  dispatch.Task
	}{
		{"record of 1 MiB", "Task",
			dispatch.Task{Kind: "k", Payload: make([]byte, 1<<20-len("kdefault"))},
			dispatch.Task{Kind: "k", Payload: make([]byte, 1<<20-len("kdefault")+1)}},
		{"headers of 80 KiB", "Task.Header",
			dispatch.Task{URL: url, Header: http.Header{"A": {long("x", 80<<10-len("A: \r\n"))}}},
			dispatch.Task{URL: url, Header: http.Header{"A": {long("x", 80<<10-len("A: \r\n")+1)}}}},
		{"headers of 80 KiB in many", "Task.Header",
			dispatch.Task{URL: url, Header: http.Header{"A": strings.Split(long("123 ", 80<<10/8-1)+"123", " ")}},
			dispatch.Task{URL: url, Header: http.Header{"A": strings.Split(long("123 ", 80<<10/8-1)+"1234", " ")}}},
		{"URL of 2083 characters", "Task.URL",
			dispatch.Task{URL: url + long("x", 2083-len(url))},
			dispatch.Task{URL: url + long("x", 2083-len(url)+1)}},
		{"ID of 500 characters", "Task.ID",
			dispatch.Task{Kind: "k", ID: dispatch.TaskID(long("x", 500))},
			dispatch.Task{Kind: "k", ID: dispatch.TaskID(long("x", 501))}},
		{"delay of ten years", "Task.Delay",
			dispatch.Task{Kind: "k", Delay: tenYears},
			dispatch.Task{Kind: "k", Delay: tenYears + 1}},
		{"shortest deadline", "Task.Timeout",
			dispatch.Task{Kind: "k", Timeout: time.Second},
			dispatch.Task{Kind: "k", Timeout: time.Second - 1}},
		{"longest deadline", "Task.Timeout",
			dispatch.Task{Kind: "k", Timeout: 24 * time.Hour},
			dispatch.Task{Kind: "k", Timeout: 24*time.Hour + 1}},
		{"schedule ten years ahead", "Task.ScheduleTime",
			dispatch.Task{Kind: "k", ScheduleTime: dispatchtest.Start.Add(tenYears)},
			dispatch.Task{Kind: "k", ScheduleTime: dispatchtest.Start.Add(tenYears + 1)}},
		{"a character of an ID", "Task.ID", dispatch.Task{Kind: "k", ID: "Az09_-"}, dispatch.Task{Kind: "k", ID: "a.b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newEnv(t, dispatch.Options{}) // its client has the clock of the store
			refused := func(err error) {
				t.Helper()
				if requireField(t, err, c.field); err != nil && len(err.Error()) > 400 {
					t.Errorf("the error has %d bytes", len(err.Error()))
				}
			}
			_, err := e.d.Enqueue(t.Context(), c.over)
			refused(err)
			results, err := e.d.EnqueueMany(t.Context(), []dispatch.Task{c.over})
			e.ok(err)
			refused(results[0].Err)
			if _, err := e.d.Queue(t.Context(), dispatch.DefaultQueue); !errors.Is(err, dispatch.ErrQueueNotFound) {
				t.Errorf("the queue of the refused task: %v", err)
			}

			id := e.enqueue(c.at)
			got := e.task(id)
			if len(got.Payload) != len(c.at.Payload) || got.URL != c.at.URL || len(got.Header["A"]) != len(c.at.Header["A"]) ||
				c.at.ID != "" && got.ID != c.at.ID || c.at.Timeout != 0 && got.Timeout != c.at.Timeout {
				t.Error("the task is stored in another form")
			}
			if due := dispatchtest.Start.Add(c.at.Delay); c.at.ScheduleTime.IsZero() && !got.Due.Equal(due) {
				t.Errorf("due %v, want %v", got.Due, due)
			}
			if got.Timeout == 0 || c.at.Timeout == 0 && got.Timeout != 10*time.Minute {
				t.Errorf("the deadline is %v", got.Timeout)
			}
		})
	}
}

// Existing tells a name that is taken from what else may be wrong with a task.
func TestResultExisting(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	tasks := []dispatch.Task{{Kind: "k", ID: "a"}, {Kind: "k", ID: "a"}, {Kind: "k"}, {}}
	for i, want := range [][]bool{{false, true, false, false}, {true, true, false, false}} {
		results, err := e.d.EnqueueMany(t.Context(), tasks)
		e.ok(err)
		for j, r := range results {
			if r.Existing() != want[j] || r.Existing() && r.ID != "a" {
				t.Errorf("call %d, task %d: existing is %v with %v", i+1, j+1, r.Existing(), r.Err)
			}
		}
	}
}
