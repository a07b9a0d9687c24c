package cluster

import "maps"

// Resources are amounts of named things: "cpu" in thousandths of a core, "memory" in bytes, any other name in whatever
// unit both sides agree on. A name that is absent from what a worker has counts as 0; one that is absent from what a
// task needs asks for nothing.
//
// Nil states nothing at all, which is not the same as having nothing: everything fits nil, and only what needs nothing
// fits Resources{}. Amounts are from 0 to 2^53 where they enter, so sums of them do not overflow. No method changes its
// receiver or its arguments.
type Resources map[string]int64

// Fits says whether r holds all that is needed.
func (r Resources) Fits(need Resources) bool {
	if r == nil {
		return true
	}
	for name, amount := range need {
		if amount > 0 && r[name] < amount {
			return false
		}
	}
	return true
}

// Add returns r with o more of everything. Nil stays nil: sums start from Resources{}.
func (r Resources) Add(o Resources) Resources { return r.plus(o, 1) }

// Sub returns r with o less of everything, below zero where r has less than that. Nil stays nil.
func (r Resources) Sub(o Resources) Resources { return r.plus(o, -1) }

func (r Resources) plus(o Resources, sign int64) Resources {
	sum := maps.Clone(r)
	if sum == nil {
		return nil
	}
	for name, amount := range o {
		sum[name] += sign * amount
	}
	return sum
}

// Merge returns base with the names of over put in place of its own. It is nil when both are.
func Merge(base, over Resources) Resources {
	merged := maps.Clone(base)
	if merged == nil {
		return maps.Clone(over)
	}
	maps.Copy(merged, over)
	return merged
}
