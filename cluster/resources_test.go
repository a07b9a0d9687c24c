package cluster_test

import (
	"maps"
	"testing"

	"github.com/dispatchkit/dispatch/cluster"
)

func TestResourcesFit(t *testing.T) {
	type r = cluster.Resources
	for name, c := range map[string]struct {
		have, need cluster.Resources
		want       bool
	}{
		"nothing is stated":            {nil, r{"cpu": 1 << 53}, true},
		"there is nothing":             {r{}, r{"cpu": 1}, false},
		"nothing is needed of nothing": {r{}, nil, true},
		"zero is needed of nothing":    {r{}, r{"gpu": 0}, true},
		"less than nothing is needed":  {r{"gpu": -5}, r{"gpu": -1}, true},
		"just enough":                  {r{"cpu": 500, "memory": 1}, r{"cpu": 500}, true},
		"one too few":                  {r{"cpu": 499}, r{"cpu": 500}, false},
		"one of two":                   {r{"cpu": 500}, r{"cpu": 1, "gpu": 1}, false},
		"overdrawn":                    {r{"cpu": -1}, r{"cpu": 1}, false},
	} {
		if got := c.have.Fits(c.need); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestResourcesArithmetic(t *testing.T) {
	type r = cluster.Resources
	have, some := r{"cpu": 5, "gpu": 0}, r{"cpu": 7, "disk": 2}
	for name, c := range map[string]struct{ got, want cluster.Resources }{
		"add":              {have.Add(some), r{"cpu": 12, "gpu": 0, "disk": 2}},
		"sub":              {have.Sub(some), r{"cpu": -2, "gpu": 0, "disk": -2}},
		"add nothing":      {have.Add(nil), have},
		"add to nothing":   {r{}.Add(some), some},
		"add to unstated":  {r(nil).Add(some), nil},
		"sub of unstated":  {r(nil).Sub(some), nil},
		"merge":            {cluster.Merge(have, some), r{"cpu": 7, "gpu": 0, "disk": 2}},
		"merge over none":  {cluster.Merge(nil, some), some},
		"merge none over":  {cluster.Merge(have, nil), have},
		"merge none, none": {cluster.Merge(nil, nil), nil},
		"merge empty":      {cluster.Merge(nil, r{}), r{}},
	} {
		if !maps.Equal(c.got, c.want) || (c.got == nil) != (c.want == nil) {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
	if !maps.Equal(have, r{"cpu": 5, "gpu": 0}) || !maps.Equal(some, r{"cpu": 7, "disk": 2}) {
		t.Error("an operand has changed")
	}
	cluster.Merge(nil, some)["cpu"] = 1
	if some["cpu"] != 7 {
		t.Error("what Merge returned is its argument")
	}
}
