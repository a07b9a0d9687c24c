package dispatch

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestIDForm(t *testing.T) {
	if len(idAlphabet) != 64 || !slices.IsSorted([]byte(idAlphabet)) {
		t.Fatalf("the alphabet has %d characters, in order: %v", len(idAlphabet), slices.IsSorted([]byte(idAlphabet)))
	}
	var ids idSource
	for i := range 1000 {
		id := ids.next(start.Add(time.Duration(i) * time.Hour))
		if len(id) != 20 || strings.Trim(string(id), idAlphabet) != "" || validateTaskID("", id) != nil {
			t.Fatalf("ID %q is not 20 characters of the alphabet", id)
		}
	}
}

func TestIDsAreUnique(t *testing.T) {
	const makers, each = 8, 125_000
	var ids idSource
	made := make([][]TaskID, makers)
	var wait sync.WaitGroup
	for m := range made {
		wait.Go(func() {
			mine := make([]TaskID, each)
			for i := range mine {
				mine[i] = ids.next(start.Add(time.Duration(i/100) * time.Millisecond))
			}
			made[m] = mine
		})
	}
	wait.Wait()
	all := slices.Concat(made...)
	slices.Sort(all)
	if n := len(slices.Compact(all)); n != makers*each {
		t.Errorf("%d of %d IDs are unique", n, makers*each)
	}
	for _, mine := range made {
		if !slices.IsSorted(mine) {
			t.Error("the IDs that one caller got do not rise")
		}
	}
}

// Also within a millisecond, and when the clock goes back.
func TestIDsRise(t *testing.T) {
	var ids idSource
	now, last := start, TaskID("")
	for i := range 200_000 {
		switch {
		case i%1000 == 0:
			now = now.Add(-time.Second)
		case i%700 == 0:
			now = now.Add(3 * time.Second)
		}
		id := ids.next(now)
		if id <= last {
			t.Fatalf("ID %d is %q after %q", i, id, last)
		}
		last = id
	}
}

func TestIDsSortByTimeAcrossSources(t *testing.T) {
	last := TaskID("")
	now := start
	for range 2000 {
		var ids idSource // another process each time
		now = now.Add(time.Millisecond)
		id := ids.next(now)
		if id <= last {
			t.Fatalf("at %v another source makes %q after %q", now, id, last)
		}
		last = id
	}
	var early, late idSource
	if e, l := early.next(time.UnixMilli(0)), late.next(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)); e >= l {
		t.Errorf("1970 makes %q and 2100 makes %q", e, l)
	}
}

// Two sources that begin at one instant do not meet: 78 bits of each ID are random.
func TestIDsOfTwoSourcesDiffer(t *testing.T) {
	heads := make(map[TaskID]bool)
	for range 10_000 {
		var ids idSource
		heads[ids.next(start)[7:]] = true
	}
	if len(heads) != 10_000 {
		t.Errorf("%d of 10000 sources are different", len(heads))
	}
}

// The 64 bits that count up do not overflow within a millisecond: they begin with a zero.
func TestIDCountHasRoom(t *testing.T) {
	for range 1000 {
		var ids idSource
		ids.next(start)
		if ids.low>>63 != 0 {
			t.Fatal("the count begins in the upper half")
		}
	}
}
