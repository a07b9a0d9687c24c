package dispatchtest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dispatchkit/dispatch"
)

// RequireEnqueued fails the test unless a task waits in its queue that has every field that want sets; those that are
// zero in want match anything. Of Header and Metadata the entries of want are compared. Delay is the time from when the
// task was stored until its first attempt. It returns the task; when several match, any of them.
func RequireEnqueued(t testing.TB, store *Store, want dispatch.Task) *dispatch.TaskInfo {
	t.Helper()
	client, err := dispatch.NewClient(store, dispatch.ClientOptions{})
	if err != nil {
		t.Fatalf("dispatchtest.RequireEnqueued: %v", err)
	}
	if want.Queue == "" {
		want.Queue = dispatch.DefaultQueue
	}
	var seen strings.Builder
	for task, err := range client.Tasks(t.Context(), want.Queue, dispatch.Filter{States: []dispatch.TaskState{dispatch.TaskWaiting}}) {
		if err != nil {
			t.Fatalf("dispatchtest.RequireEnqueued: %v", err)
		}
		if matches(want, task) {
			return task
		}
		fmt.Fprintf(&seen, "\n\t%s %s%s %.60q", task.ID, task.Kind, task.URL, task.Payload)
	}
	if seen.Len() == 0 {
		seen.WriteString("\n\tnothing")
	}
	t.Fatalf("dispatchtest.RequireEnqueued: no task like %s%s %s %.60q waits in queue %q; there is:%s",
		want.Kind, want.URL, want.ID, want.Payload, want.Queue, seen.String())
	return nil
}

func matches(want dispatch.Task, got *dispatch.TaskInfo) bool {
	for name, v := range want.Metadata {
		if got.Metadata[name] != v {
			return false
		}
	}
	for name, v := range want.Header {
		if !slices.Equal(got.Header[name], v) {
			return false
		}
	}
	return got.Err == nil && (want.ID == "" || want.ID == got.ID) &&
		(want.Kind == "" || want.Kind == got.Kind) &&
		(want.URL == "" || want.URL == got.URL) &&
		(want.Method == "" || want.Method == got.Method) &&
		(want.Payload == nil || bytes.Equal(want.Payload, got.Payload)) &&
		(want.Delay == 0 || want.Delay == got.Due.Sub(got.CreatedAt)) &&
		(want.ScheduleTime.IsZero() || want.ScheduleTime.Equal(got.Due)) &&
		(want.Timeout == 0 || want.Timeout == got.Timeout) &&
		(want.Retry == nil || got.Retry != nil && *want.Retry == *got.Retry)
}
