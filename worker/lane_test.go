package worker

import (
	"context"
	"fmt"
	"slices"
	"testing"
)

// TestPoolLanesTakeTurns: the items of a lane wait behind each other, not behind those of other lanes.
func TestPoolLanesTakeTurns(t *testing.T) {
	var ran []string
	gate := make(chan struct{})
	p := NewPool(1, 1, func(name string) {
		<-gate
		ran = append(ran, name)
	})
	p.Add("a", "a1", "a2", "a3", "a4")
	p.Add("b", "b1", "b2")
	p.Add("c", "c1")
	if got := p.Withdraw(func(name string) bool { return name == "a2" || name == "c1" }); !slices.Equal(got, []string{"a2", "c1"}) {
		t.Errorf("withdrew %v", got)
	}
	p.Add("c", "c2")
	if p.Waiting() != 5 {
		t.Errorf("%d wait, want 5", p.Waiting())
	}
	close(gate)
	waitIdle(t, p)
	if want := []string{"a1", "a3", "b1", "c2", "a4", "b2"}; !slices.Equal(ran, want) {
		t.Errorf("ran %v, want %v", ran, want)
	}
}

// TestPoolBound: items that hang, and those behind them, leave the other places to other lanes.
func TestPoolBound(t *testing.T) {
	started := make(chan string, 100)
	gates := map[string]chan struct{}{"noisy": make(chan struct{}), "quiet": make(chan struct{})}
	p := NewPool(8, 0, func(lane string) {
		started <- lane
		<-gates[lane]
	})
	running := func(noisy, quiet int) {
		t.Helper()
		if p.Running() != noisy+quiet || p.Bound("noisy", 0) != noisy || p.Bound("quiet", 0) != quiet {
			t.Errorf("%d run, want %d of the noisy lane and %d of the quiet one", p.Running(), noisy, quiet)
		}
	}
	p.Add("noisy", slices.Repeat([]string{"noisy"}, 20)...)
	running(0, 0)
	if err := p.Wait(canceled(t)); err == nil {
		t.Error("a pool in which items wait is idle")
	}
	if n := p.Bound("noisy", 6); n != 6 {
		t.Errorf("%d of the noisy lane run, want 6", n)
	}
	running(6, 0)
	p.Bound("quiet", 1)
	p.Add("quiet", "quiet", "quiet")
	running(6, 1)
	p.Bound("noisy", 4) // those beyond go on
	running(6, 1)
	p.Bound("noisy", 6)
	p.Bound("quiet", 5) // and places are scarce: six, two, and nothing more waits
	running(6, 2)

	p.Bound("noisy", 3)
	for range 6 { // three of them are followed by another one
		gates["noisy"] <- struct{}{}
	}
	close(gates["quiet"])
	starts := map[string]int{}
	for range 6 + 2 + 3 {
		starts[await(t, started, "start")]++
	}
	if starts["noisy"] != 9 || starts["quiet"] != 2 {
		t.Errorf("started were %v, want 6 and 3 of the noisy lane and 2 of the quiet one", starts)
	}
	for p.Running() > 3 {
		continue
	}
	running(3, 0)
	if got := len(p.Withdraw(nil)); got != 11 || p.Waiting() != 0 {
		t.Errorf("withdrew %d, want 11", got)
	}
	close(gates["noisy"])
	waitIdle(t, p)
}

// TestPoolForgetsLanes: many names leave no trace.
func TestPoolForgetsLanes(t *testing.T) {
	gate := make(chan struct{})
	p := NewPool(8, 0, func(int) { <-gate })
	for i := range 10 * keptLanes {
		name := fmt.Sprint("lane", i)
		p.Add(name, i, i)
		p.Bound(name, 1)
		if i%2 == 0 {
			p.Bound(name, 0)
		}
	}
	p.Withdraw(func(i int) bool { return i%2 == 0 })
	close(gate)
	waitIdle(t, p)
	for i := range 10 * keptLanes {
		p.Bound(fmt.Sprint("lane", i), 0)
	}
	if n := len(p.lanes); n > keptLanes {
		t.Errorf("%d lanes are left", n)
	}
}

func canceled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
