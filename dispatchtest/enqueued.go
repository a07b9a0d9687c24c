package dispatchtest

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/dispatchkit/dispatch"
)

// RequireEnqueued fails the test unless a task waits in its queue that has every field that want sets: ID, Kind, URL,
// Method, Payload and Metadata are compared, and those that are zero in want match anything. It returns the task; when
// several match, any of them.
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
		if matches(want, task.Task) {
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

func matches(want, got dispatch.Task) bool {
	for name, v := range want.Metadata {
		if got.Metadata[name] != v {
			return false
		}
	}
	return (want.ID == "" || want.ID == got.ID) &&
		(want.Kind == "" || want.Kind == got.Kind) &&
		(want.URL == "" || want.URL == got.URL) &&
		(want.Method == "" || want.Method == got.Method) &&
		(want.Payload == nil || bytes.Equal(want.Payload, got.Payload))
}
