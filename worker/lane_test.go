package worker

import (
	"fmt"
	"slices"
	"testing"
)

// threePerFree is a rule as a dispatcher has it.
func threePerFree(has, free int) bool { return has == 0 || has+1 <= 3*(free-1) }

// TestPoolLanesTakeTurns: the items of a lane wait behind each other, not behind those of other lanes.
func TestPoolLanesTakeTurns(t *testing.T) {
	var ran []string
	gate := make(chan struct{})
	p := NewPool(1, nil, func(name string) {
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

// TestPoolKeepsPlacesForOtherLanes: items that hang, and those behind them, leave places to lanes that have none.
func TestPoolKeepsPlacesForOtherLanes(t *testing.T) {
	started := make(chan string, 1000)
	gates := map[string]chan struct{}{}
	for _, lane := range []string{"noisy", "second", "quiet"} {
		gates[lane] = make(chan struct{})
	}
	p := NewPool(16, threePerFree, func(lane string) {
		started <- lane
		<-gates[lane]
	})
	add := func(lane string, n, running int) {
		t.Helper()
		p.Add(lane, slices.Repeat([]string{lane}, n)...)
		if got := p.Running(); got != running {
			t.Errorf("%d run once there are %d of lane %s, want %d", got, n, lane, running)
		}
	}
	add("noisy", 100, 12)
	add("second", 100, 15)
	add("quiet", 1, 16)
	for range 16 {
		await(t, started, "start")
	}
	close(gates["quiet"]) // its place goes to nobody: the others have their parts
	for p.Running() == 16 {
		continue
	}
	if p.Running() != 15 || p.Waiting() != 88+97 {
		t.Errorf("%d run and %d wait, want 15 and 185", p.Running(), p.Waiting())
	}
	close(gates["second"])
	for range 97 {
		if lane := await(t, started, "start"); lane != "second" {
			t.Errorf("lane %s starts one, and has its part already", lane)
		}
	}
	if got := len(p.Withdraw(nil)); got != 88 {
		t.Errorf("withdrew %d, want the 88 of the noisy lane", got)
	}
	close(gates["noisy"])
	waitIdle(t, p)
}

// TestPoolEndLetsTwoStart: where an item ends and another lane has the place, its own lane may be let go on as well.
func TestPoolEndLetsTwoStart(t *testing.T) {
	gates := map[string]chan struct{}{"a": make(chan struct{}), "b": make(chan struct{})}
	started := make(chan string, 100)
	p := NewPool(8, threePerFree, func(lane string) {
		started <- lane
		<-gates[lane]
	})
	starts := func(n int) {
		t.Helper()
		for range n {
			await(t, started, "start")
		}
	}
	p.Add("a", slices.Repeat([]string{"a"}, 20)...)
	p.Add("b", slices.Repeat([]string{"b"}, 20)...)
	starts(6 + 1)
	for range 2 { // b has its place
		gates["a"] <- struct{}{}
		starts(1)
	}
	gates["a"] <- struct{}{} // now both have three, and two are free
	for p.Running() != 6 {
		continue
	}
	gates["a"] <- struct{}{}
	gates["a"] <- struct{}{}
	starts(3) // one for each, and one more when it is b's turn
	p.Withdraw(nil)
	close(gates["a"])
	close(gates["b"])
	waitIdle(t, p)
}

// TestPoolForgetsLanes: many names leave no trace.
func TestPoolForgetsLanes(t *testing.T) {
	gate := make(chan struct{})
	p := NewPool(8, threePerFree, func(int) { <-gate })
	for i := range 10 * keptLanes {
		p.Add(fmt.Sprint("lane", i), i, i)
	}
	p.Withdraw(func(i int) bool { return i%2 == 0 })
	close(gate)
	waitIdle(t, p)
	if n := len(p.lanes); n > keptLanes {
		t.Errorf("%d lanes are left", n)
	}
}
