package storetest

import (
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/cluster"
)

var planCases = []testcase{
	{"a plan is read back", planIsReadBack},
	{"later plans replace", laterPlansReplace},
	{"a plan of a term that is over is refused", planOfAnOldTerm},
	{"a plan of a term that nobody knew counts", planOfANewTerm},
	{"a plan is announced", planIsAnnounced},
	{"what is no plan is refused", plansAreChecked},
}

func (e *env) publish(p cluster.Plan) {
	e.Helper()
	e.ok(e.store.PublishPlan(e.ctx, &p))
	e.planned(p)
}

func (e *env) planned(want cluster.Plan) {
	e.Helper()
	got, err := e.store.Plan(e.ctx)
	e.ok(err)
	if got == nil {
		e.Fatal("there is no plan")
	}
	equal(e, "plan", *got, want)
}

func planIsReadBack(e *env) {
	if p, err := e.store.Plan(e.ctx); p != nil || err != nil {
		e.Fatalf("a plan without one: %v, %v", p, err)
	}
	term := e.begin(alice)
	e.publish(cluster.Plan{Term: term, Revision: 1})
	e.publish(cluster.Plan{Term: term, Revision: 2,
		Workers: []cluster.PlanWorker{
			{ID: alice, Queues: []string{"mail", "a.b-c"}, Concurrency: 64},
			{ID: bob, Concurrency: 1},
		},
		Spread: map[string]int{"mail": 2, "images": 1},
	})
}

func laterPlansReplace(e *env) {
	term := e.begin(alice)
	e.publish(cluster.Plan{Term: term, Revision: 5})
	last := cluster.Plan{Term: term, Revision: 7, Spread: map[string]int{"mail": 1}}
	e.publish(last)
	e.publish(last)
	e.fails("earlier revision", e.store.PublishPlan(e.ctx, &cluster.Plan{Term: term, Revision: 6}), dispatch.ErrLeadershipLost)
	e.planned(last)
	e.publish(cluster.Plan{Term: e.begin(alice), Revision: 0})
}

func planOfAnOldTerm(e *env) {
	first := cluster.Plan{Term: e.begin(alice), Revision: 1}
	e.publish(first)
	second := e.begin(bob)
	e.fails("publish", e.store.PublishPlan(e.ctx, &cluster.Plan{Term: first.Term, Revision: 2}), dispatch.ErrLeadershipLost)
	e.planned(first)
	e.publish(cluster.Plan{Term: second})
	e.fails("publish", e.store.PublishPlan(e.ctx, &cluster.Plan{Term: first.Term, Revision: 9}), dispatch.ErrLeadershipLost)
	e.planned(cluster.Plan{Term: second})
}

func planOfANewTerm(e *env) {
	term := e.begin(alice) + time.Hour.Milliseconds()
	e.publish(cluster.Plan{Term: term})
	if next := e.begin(alice); next <= term {
		e.Errorf("term %d after one of %d", next, term)
	}
}

func planIsAnnounced(e *env) {
	l := e.listen()
	defer l.stop(e)
	term := e.begin(alice)
	e.publish(cluster.Plan{Term: term, Revision: 1})
	l.hears(e, hint(dispatch.HintPlan, 0))
	e.publish(cluster.Plan{Term: term, Revision: 1}) // no news
	e.announce(hint("x", 0))
	l.hears(e, hint("x", 0))
}

func plansAreChecked(e *env) {
	for _, p := range []*cluster.Plan{nil, {}, {Term: -1}, {Term: 1, Revision: -1}, {Term: 1<<53 + 1}} {
		e.badInput("publish", e.store.PublishPlan(e.ctx, p))
	}
	if p, err := e.store.Plan(e.ctx); p != nil || err != nil {
		e.Errorf("a plan without one: %v, %v", p, err)
	}
}
