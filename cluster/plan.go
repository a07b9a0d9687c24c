package cluster

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Plan is the leader's hint of which worker looks at which queue first. Every worker derives the same order from it by
// weighted rendezvous hashing. It is never needed for correctness: with no plan, or an old one, tasks only start a
// little later or cost a claim more.
//
// A plan that others may see is not changed any more; so its methods are safe for concurrent use, also of a nil plan,
// which is one of nobody.
type Plan struct {
	// Term is that of the leader that made it; Revision rises with every plan of a term.
	Term     int64
	Revision int64
	// Workers are the live ones, by ID.
	Workers []PlanWorker
	// Spread names queues with a backlog, and how many workers are at home there; all others have one home.
	Spread map[string]int
}

// PlanWorker is a worker's part in a Plan.
type PlanWorker struct {
	// ID, Queues and Concurrency are as in Worker. The weight of a worker is its Concurrency, at least 1.
	ID          WorkerID
	Queues      []string
	Concurrency int
}

// NewPlan makes a plan of those workers that are active, by ID, with no term and no spread. The order of the workers and
// of their queues makes no difference to it.
func NewPlan(workers []*Worker) *Plan {
	p := &Plan{}
	for _, w := range workers {
		if w == nil || w.State != StateActive {
			continue
		}
		queues := slices.Clone(w.Queues)
		slices.Sort(queues)
		p.Workers = append(p.Workers, PlanWorker{ID: w.ID, Queues: slices.Compact(queues), Concurrency: w.Concurrency})
	}
	slices.SortFunc(p.Workers, func(a, b PlanWorker) int { return cmp.Compare(a.ID, b.ID) })
	return p
}

// Heard returns the workers that were seen at most so long before the one that was seen last. It compares instants of the
// registry's clock alone.
func Heard(workers []*Worker, silent time.Duration) []*Worker {
	var latest time.Time
	for _, w := range workers {
		if w.LastSeen.After(latest) {
			latest = w.LastSeen
		}
	}
	return slices.DeleteFunc(slices.Clone(workers), func(w *Worker) bool { return latest.Sub(w.LastSeen) > silent })
}

// Same says whether two plans tell the workers the same, whatever their terms and revisions are. The leader publishes a
// plan only if it is not.
func (p *Plan) Same(other *Plan) bool {
	var none Plan
	if p == nil {
		p = &none
	}
	if other == nil {
		other = &none
	}
	return maps.Equal(p.Spread, other.Spread) && slices.EqualFunc(p.Workers, other.Workers, PlanWorker.same)
}

func (w PlanWorker) same(o PlanWorker) bool {
	return w.ID == o.ID && w.Concurrency == o.Concurrency && slices.Equal(w.Queues, o.Queues)
}

// weight is never 0: a worker without a weight would be at home nowhere, and with only such workers nobody would be.
func (w PlanWorker) weight() float64 { return float64(max(w.Concurrency, 1)) }
