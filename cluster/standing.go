package cluster

import (
	"cmp"
	"math"
	"slices"
)

// Standing is where a worker stands with a queue.
type Standing struct {
	// Rank is 0 for the first home and rises. Homes is how many ranks are home, at least 1.
	Rank, Homes int
	// Share is the worker's part of the queue's rate, above 0 and at most 1: by weight among the homes, whose shares make
	// 1, and for all others what they would have if all who serve the queue were homes.
	Share float64
}

// Home says whether the worker is to claim at once.
func (s Standing) Home() bool { return s.Rank < s.Homes }

// Standing says where a worker stands with a queue. Workers that hold the same plan agree: those that serve the queue
// have the ranks from 0 up, each once. When a worker leaves, the others keep their order; so only the queues that it was
// at home with get a new home, and a worker that joins takes over only those that it is at home with. Over many queues,
// a worker is the first home of a part of them that follows its weight.
//
// A worker that the plan does not know, or that does not serve the queue by it, is a home of its own with all of the rate:
// the plan is old, and too many claims are better than none. So is whoever asks a nil plan.
//
// It costs one hash for each worker of the plan, and with several homes a sort: remember the result while the plan stays.
func (p *Plan) Standing(queue string, id WorkerID) Standing {
	if p == nil {
		return Standing{Homes: 1, Share: 1}
	}
	bids := make([]bid, 0, len(p.Workers))
	self := -1
	var total float64
	for _, w := range p.Workers {
		if !serves(w.Queues, queue) {
			continue
		}
		if w.ID == id {
			self = len(bids)
		}
		bids = append(bids, bid{id: w.ID, weight: w.weight(), score: w.weight() / -math.Log(chance(queue, w.ID))})
		total += w.weight()
	}
	if self < 0 {
		return Standing{Homes: 1, Share: 1}
	}
	homes := min(max(p.Spread[queue], 1), len(bids))
	own := bids[self]
	s := Standing{Homes: homes, Share: own.weight / total}
	for _, b := range bids {
		if b.before(own) < 0 {
			s.Rank++
		}
	}
	if s.Home() && homes < len(bids) {
		slices.SortFunc(bids, bid.before)
		total = 0
		for _, b := range bids[:homes] {
			total += b.weight
		}
		s.Share = own.weight / total
	}
	return s
}

// bid is what a worker offers for a queue: the highest score wins.
type bid struct {
	id            WorkerID
	weight, score float64
}

// before orders bids from the first home on. The ID decides between equal scores, so that it is an order all the same.
func (b bid) before(o bid) int {
	return cmp.Or(cmp.Compare(o.score, b.score), cmp.Compare(b.id, o.id))
}

// chance draws a number above 0 and below 1 for a queue and a worker, the same in every process and release: a worker
// that drew otherwise would disagree with all others about who is at home where. With a score of weight/-ln(chance),
// each worker wins with a probability of its part of the weights.
//
// Only the last bit of math.Log may differ between architectures. Two scores that near are as good as never seen, and
// would cost no more than a claim.
func chance(queue string, id WorkerID) float64 {
	const (
		offset = 14695981039346656037 // FNV-1a
		prime  = 1099511628211
	)
	h := uint64(offset)
	for i := range len(queue) {
		h = (h ^ uint64(queue[i])) * prime
	}
	h *= prime // a zero byte ends the queue, so that "a"+"bc" is not "ab"+"c"
	for i := range len(id) {
		h = (h ^ uint64(id[i])) * prime
	}
	// FNV leaves the high bits of names alike that differ at their end. The finaliser of splitmix64 spreads them.
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	h ^= h >> 31
	// 52 bits and a half fit a float64 exactly, so this can be neither 0 nor 1.
	return (float64(h>>12) + 0.5) / (1 << 52)
}
