package cluster_test

import (
	"slices"
	"testing"
	"time"

	"github.com/dispatchkit/dispatch/cluster"
)

func TestNewPlan(t *testing.T) {
	workers := []*cluster.Worker{
		{ID: "w-c", State: cluster.StateActive, Concurrency: 3, Queues: []string{"z", "a", "z"}},
		{ID: "w-d", State: cluster.StateDraining},
		nil,
		{ID: "w-e", State: cluster.StateDead},
		{ID: "w-a", State: cluster.StateActive, Concurrency: 1, Queues: []string{}},
	}
	p := cluster.NewPlan(workers)
	want := &cluster.Plan{Workers: []cluster.PlanWorker{
		{ID: "w-a", Concurrency: 1}, {ID: "w-c", Queues: []string{"a", "z"}, Concurrency: 3},
	}}
	if !p.Same(want) || p.Term != 0 || p.Revision != 0 {
		t.Errorf("the plan is %+v", p)
	}
	if workers[0].Queues[0] != "z" {
		t.Error("the queues of the worker were sorted")
	}
}

func TestPlanSame(t *testing.T) {
	base := func() *cluster.Plan {
		return &cluster.Plan{Term: 1, Workers: []cluster.PlanWorker{{ID: "w-a", Queues: []string{"q"}, Concurrency: 2}},
			Spread: map[string]int{"q": 2}}
	}
	for name, c := range map[string]struct {
		change func(*cluster.Plan)
		same   bool
	}{
		"nothing":     {func(*cluster.Plan) {}, true},
		"term":        {func(p *cluster.Plan) { p.Term, p.Revision = 7, 8 }, true},
		"id":          {func(p *cluster.Plan) { p.Workers[0].ID = "w-b" }, false},
		"queues":      {func(p *cluster.Plan) { p.Workers[0].Queues = nil }, false},
		"concurrency": {func(p *cluster.Plan) { p.Workers[0].Concurrency = 3 }, false},
		"workers":     {func(p *cluster.Plan) { p.Workers = nil }, false},
		"spread":      {func(p *cluster.Plan) { p.Spread["q"] = 3 }, false},
	} {
		other := base()
		c.change(other)
		if base().Same(other) != c.same || other.Same(base()) != c.same {
			t.Errorf("%s has changed: same is not %v", name, c.same)
		}
	}
	var none *cluster.Plan
	if !none.Same(nil) || !none.Same(&cluster.Plan{Term: 1}) || !(&cluster.Plan{}).Same(none) {
		t.Error("no plan is not the same as one of nobody")
	}
	if none.Same(base()) || base().Same(none) {
		t.Error("no plan is the same as one of somebody")
	}
}

func TestHeard(t *testing.T) {
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	workers := []*cluster.Worker{
		{ID: "a", LastSeen: now.Add(-16 * time.Second)}, {ID: "b", LastSeen: now.Add(-15 * time.Second)},
		{ID: "c", LastSeen: now}, {ID: "d", LastSeen: now.Add(-time.Hour)},
	}
	var ids []cluster.WorkerID
	for _, w := range cluster.Heard(workers, 15*time.Second) {
		ids = append(ids, w.ID)
	}
	if !slices.Equal(ids, []cluster.WorkerID{"b", "c"}) || len(workers) != 4 || workers[0].ID != "a" {
		t.Errorf("heard of %v", ids)
	}
	if len(cluster.Heard(nil, time.Second)) != 0 {
		t.Error("heard of somebody among nobody")
	}
}
