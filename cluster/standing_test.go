package cluster_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/dispatchkit/dispatch/cluster"
)

// planOf makes a plan of workers a, b, c ... that serve all queues, with these weights.
func planOf(weights ...int) *cluster.Plan {
	p := &cluster.Plan{}
	for i, weight := range weights {
		p.Workers = append(p.Workers, cluster.PlanWorker{ID: cluster.WorkerID("w-" + string(rune('a'+i))), Concurrency: weight})
	}
	return p
}

// first is the worker that is the first home of a queue.
func first(p *cluster.Plan, queue string) cluster.WorkerID {
	i := slices.IndexFunc(p.Workers, func(w cluster.PlanWorker) bool { return p.Standing(queue, w.ID).Rank == 0 })
	return p.Workers[i].ID
}

const queues = 10_000

func queueName(i int) string { return fmt.Sprintf("queue-%d", i) }

// The ranks are the same in every release: while workers are replaced, old and new ones have to agree.
func TestStandingGolden(t *testing.T) {
	p := planOf(1, 4, 16, 0)
	for queue, want := range map[string][4]int{
		"mail":    {3, 1, 0, 2},
		"default": {2, 1, 0, 3},
		"hooks.1": {3, 2, 0, 1},
		"hooks.2": {3, 1, 0, 2},
		"":        {2, 0, 1, 3},
	} {
		var ranks [4]int
		for i, w := range p.Workers {
			ranks[i] = p.Standing(queue, w.ID).Rank
		}
		if ranks != want {
			t.Errorf("ranks of %q are %v, want %v", queue, ranks, want)
		}
	}
}

func TestStandingFollowsWeights(t *testing.T) {
	weights := []int{1, 2, 3, 10, 64}
	p := planOf(weights...)
	homes := map[cluster.WorkerID]int{}
	for i := range queues {
		homes[first(p, queueName(i))]++
	}
	for _, w := range p.Workers {
		share := float64(w.Concurrency) / 80
		want := share * queues
		if off := math.Abs(float64(homes[w.ID]) - want); off > 4*math.Sqrt(want*(1-share)) {
			t.Errorf("the worker of weight %d is at home with %d queues, want about %.0f", w.Concurrency, homes[w.ID], want)
		}
	}
}

// Names that differ in one place only, as names do, are spread as well as any.
func TestStandingSpreadsAlikeNames(t *testing.T) {
	for name, at := range map[string]func(int) string{
		"at the end":   func(i int) string { return "tenant-" + string(rune('a'+i)) },
		"at the start": func(i int) string { return string(rune('a'+i)) + "-tenant" },
	} {
		homes := map[cluster.WorkerID]int{}
		for i := range 26 {
			homes[first(planOf(8, 8, 8), at(i))]++
		}
		for id, n := range homes {
			if n > 16 || len(homes) < 3 {
				t.Errorf("names that differ %s: %s has %d of 26 queues", name, id, n)
			}
		}
	}
}

// Only the queues of the worker that leaves move, and only to the worker that joins.
func TestStandingMovesLittle(t *testing.T) {
	all := planOf(8, 8, 4, 16, 8)
	for left := range all.Workers {
		rest := &cluster.Plan{Workers: slices.Delete(slices.Clone(all.Workers), left, left+1)}
		gone := all.Workers[left].ID
		moved := 0
		for i := range queues {
			before, after := first(all, queueName(i)), first(rest, queueName(i))
			if before != gone && before != after {
				t.Fatalf("%s moved from %s to %s when %s left", queueName(i), before, after, gone)
			}
			if before == gone {
				moved++
			}
		}
		if moved == 0 || moved > queues/2 {
			t.Errorf("%d queues moved when %s left", moved, gone)
		}
	}
}

func TestStandingShares(t *testing.T) {
	p := planOf(1, 2, 5, 0, 8)
	p.Spread = map[string]int{"two": 2, "all": 5, "many": 99, "none": 0, "negative": -1}
	for queue, homes := range map[string]int{"other": 1, "two": 2, "all": 5, "many": 5, "none": 1, "negative": 1} {
		var sum, weights float64
		for _, w := range p.Workers {
			if p.Standing(queue, w.ID).Home() {
				weights += float64(max(w.Concurrency, 1))
			}
		}
		for _, w := range p.Workers {
			s, weight := p.Standing(queue, w.ID), float64(max(w.Concurrency, 1))
			want := weight / 17
			if s.Home() {
				sum += s.Share
				want = weight / weights
			}
			if s.Homes != homes || math.Abs(s.Share-want) > 1e-12 {
				t.Errorf("%s stands with %q as %+v, want %d homes and a share of %v", w.ID, queue, s, homes, want)
			}
		}
		if math.Abs(sum-1) > 1e-12 {
			t.Errorf("the homes of %q share %v", queue, sum)
		}
	}
}

func TestStandingOfOthers(t *testing.T) {
	p := &cluster.Plan{
		Workers: []cluster.PlanWorker{{ID: "w-a", Queues: []string{"mail"}}, {ID: "w-b"}, {ID: "w-c", Queues: []string{"hooks"}}},
		Spread:  map[string]int{"hooks": 2},
	}
	narrow := &cluster.Plan{Workers: p.Workers[:1]}
	for _, c := range []struct {
		name  string
		plan  *cluster.Plan
		queue string
		id    cluster.WorkerID
		want  cluster.Standing
	}{
		{"no plan", nil, "mail", "w-a", cluster.Standing{Homes: 1, Share: 1}},
		{"an empty plan", &cluster.Plan{}, "mail", "w-a", cluster.Standing{Homes: 1, Share: 1}},
		{"nobody serves it", narrow, "hooks", "w-a", cluster.Standing{Homes: 1, Share: 1}},
		{"a stranger", p, "mail", "w-x", cluster.Standing{Homes: 1, Share: 1}},
		{"it serves other queues", p, "hooks", "w-a", cluster.Standing{Homes: 1, Share: 1}},
		{"only it serves it", narrow, "mail", "w-a", cluster.Standing{Homes: 1, Share: 1}},
		{"a stranger beside the only one", narrow, "mail", "w-x", cluster.Standing{Homes: 1, Share: 1}},
	} {
		if s := c.plan.Standing(c.queue, c.id); s != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, s, c.want)
		}
	}
}

// Whatever is in a plan, the workers that serve a queue have the ranks from 0 up, and their shares are shares.
func FuzzStanding(f *testing.F) {
	f.Add("mail", uint64(1), 3, 1)
	f.Add("", uint64(0), 0, 0)
	f.Add("\x00", uint64(math.MaxUint64), 40, -7)
	f.Fuzz(func(t *testing.T, queue string, seed uint64, n, spread int) {
		n = min(max(n, 0), 50)
		p := &cluster.Plan{Spread: map[string]int{queue: spread}}
		for i := range n {
			w := cluster.PlanWorker{ID: cluster.WorkerID(fmt.Sprintf("%x-%d", seed, i)), Concurrency: int(seed>>(i%60)) - 2}
			if seed>>(i%64)&3 == 3 {
				w.Queues = []string{"other"}
			}
			p.Workers = append(p.Workers, w)
		}
		var ranks []int
		var sum float64
		for _, w := range p.Workers {
			s := p.Standing(queue, w.ID)
			if s.Share <= 0 || s.Share > 1 || s.Homes < 1 {
				t.Errorf("%s stands as %+v", w.ID, s)
			}
			if len(w.Queues) > 0 && queue != "other" {
				continue
			}
			ranks = append(ranks, s.Rank)
			if s.Home() {
				sum += s.Share
			}
		}
		slices.Sort(ranks)
		for i, rank := range ranks {
			if rank != i {
				t.Fatalf("the ranks are %v", ranks)
			}
		}
		if len(ranks) > 0 && math.Abs(sum-1) > 1e-9 {
			t.Errorf("the homes share %v", sum)
		}
	})
}
