package cluster_test

import (
	"regexp"
	"testing"

	"github.com/dispatchkit/dispatch/cluster"
)

func TestNewWorkerID(t *testing.T) {
	form := regexp.MustCompile(`^w-[a-z2-7]{16}$`)
	seen := map[cluster.WorkerID]bool{}
	for range 1000 {
		id := cluster.NewWorkerID()
		if !form.MatchString(string(id)) || seen[id] {
			t.Fatalf("%q has another form, or came twice", id)
		}
		seen[id] = true
	}
}

func TestWorkerIDFromContext(t *testing.T) {
	if id, ok := cluster.WorkerIDFrom(t.Context()); ok || id != "" {
		t.Errorf("a context without one has %q", id)
	}
	if id, ok := cluster.WorkerIDFrom(cluster.WithWorkerID(t.Context(), "w-1")); !ok || id != "w-1" {
		t.Errorf("the context has %q, %v", id, ok)
	}
}
