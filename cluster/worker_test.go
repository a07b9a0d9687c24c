package cluster_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/dispatchkit/dispatch/cluster"
)

// The names of a worker's fields are those of the HTTP interface.
func TestWorkerJSON(t *testing.T) {
	at := time.Date(2026, time.January, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		worker cluster.Worker
		want   string
	}{
		{cluster.Worker{ID: "w-1", Queues: []string{}, State: cluster.StateActive, LastSeen: at, CreatedAt: at},
			`{"id":"w-1","hostname":"","queues":[],"concurrency":0,"state":"active","is_leader":false,` +
				`"last_seen":"2026-01-02T03:04:05Z","created_at":"2026-01-02T03:04:05Z"}`},
		{cluster.Worker{ID: "w-1", Hostname: "h", Queues: []string{"q"}, Concurrency: 2, State: cluster.StateDraining,
			Capacity: cluster.Resources{"cpu": 1500}, IsLeader: true, LeaderUntil: &at, LastSeen: at,
			Metadata: map[string]string{"zone": "a"}, CreatedAt: at},
			`{"id":"w-1","hostname":"h","queues":["q"],"concurrency":2,"state":"draining","capacity":{"cpu":1500},` +
				`"is_leader":true,"leader_until":"2026-01-02T03:04:05Z","last_seen":"2026-01-02T03:04:05Z",` +
				`"metadata":{"zone":"a"},"created_at":"2026-01-02T03:04:05Z"}`},
	} {
		text, err := json.Marshal(c.worker)
		if err != nil || string(text) != c.want {
			t.Errorf("the worker is %s (%v), want %s", text, err, c.want)
		}
		var back cluster.Worker
		if err := json.Unmarshal(text, &back); err != nil {
			t.Error(err)
		}
		if again, _ := json.Marshal(back); string(again) != c.want {
			t.Errorf("read and written again it is %s", again)
		}
	}
}
