package cluster_test

import (
	"maps"
	"testing"

	"github.com/dispatchkit/dispatch/cluster"
)

// Amounts that enter are from 0 to 2^53. What was taken can be put back, nobody's map is changed, and what fits is what
// leaves nothing below zero.
func FuzzResources(f *testing.F) {
	f.Add("cpu", "gpu", int64(5), int64(0), int64(3), int64(1), uint8(0))
	f.Add("cpu", "cpu", int64(1<<53), int64(1<<53), int64(0), int64(-1), uint8(3))
	f.Add("", "x", int64(0), int64(1), int64(1), int64(0), uint8(1))
	f.Fuzz(func(t *testing.T, a, b string, has, more, need, extra int64, kind uint8) {
		amount := func(n int64) int64 { return n & (1<<53 - 1) }
		free := cluster.Resources{a: amount(has), b: amount(more)}
		wanted := cluster.Resources{a: amount(need), "other": amount(extra)}
		if kind&1 != 0 {
			free = nil
		}
		if kind&2 != 0 {
			wanted = nil
		}
		freeBefore, wantedBefore := maps.Clone(free), maps.Clone(wanted)

		left := free.Sub(wanted)
		short := false
		for name, n := range left {
			short = short || n < 0 && wanted[name] > 0
		}
		if fits := free.Fits(wanted); fits == short {
			t.Errorf("%v fits %v: %v, and leaves %v", free, wanted, fits, left)
		}
		back := left.Add(wanted)
		for name, n := range back {
			if n != free[name] {
				t.Errorf("%v less %v and put back is %v", free, wanted, back)
			}
		}
		if (left == nil) != (free == nil) || free != nil && len(back) < len(free) {
			t.Errorf("%v less %v is %v", free, wanted, left)
		}
		merged := cluster.Merge(free, wanted)
		for name, n := range merged {
			if want, own := wanted[name]; own && n != want || !own && n != free[name] {
				t.Errorf("%v under %v is %v", free, wanted, merged)
			}
		}
		if (merged == nil) != (free == nil && wanted == nil) || len(merged) < max(len(free), len(wanted)) {
			t.Errorf("%v under %v is %v", free, wanted, merged)
		}
		if !maps.Equal(free, freeBefore) || !maps.Equal(wanted, wantedBefore) {
			t.Error("an argument was changed")
		}
	})
}
