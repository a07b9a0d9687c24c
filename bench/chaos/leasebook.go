package main

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/bench/chaos/audit"
)

// leaseBook gathers the calls that several clients make about the leases of a few tasks. It is safe for concurrent use.
type leaseBook struct {
	queue string
	tasks []dispatch.TaskID
	began time.Time
	log   *audit.Log

	mu    sync.Mutex
	calls map[dispatch.TaskID][]audit.Op
	// How many calls may still have no answer, as the search for an order is exponential in them; and how many claims, because one of
	// these explains whatever is leased to nobody.
	unknown, unknownClaims int
	tally                  leaseTally
}

// leaseTally is what the calls of a run came to.
type leaseTally struct{ Calls, Refused, Unanswered, Swept int }

func newLeaseBook(queue string, log *audit.Log, tasks []dispatch.TaskID) *leaseBook {
	return &leaseBook{
		queue: queue, tasks: tasks, began: time.Now(), log: log, calls: map[dispatch.TaskID][]audit.Op{}, unknown: 6, unknownClaims: 1,
	}
}

// now is the time of the book, by a clock that nobody sets.
func (b *leaseBook) now() int64 { return time.Since(b.began).Nanoseconds() }

func (b *leaseBook) add(id dispatch.TaskID, op audit.Op) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls[id] = append(b.calls[id], op)
	b.tally.Calls++
	switch {
	case !op.Known:
		b.tally.Unanswered++
	case op.Kind != audit.OpClaim && !op.Applied:
		b.tally.Refused++
	}
}

// claimed adds a claim to the tasks that it has leased; and to all if it was made again, as it may have leased more.
func (b *leaseBook) claimed(op audit.Op, leased []dispatch.Leased) {
	for _, id := range b.tasks {
		op.Got = 0
		for i := range leased {
			if l := &leased[i]; l.Task.ID == id {
				op.Got = l.Lease.Token
				b.event(audit.KindStart, l, "")
			}
		}
		if op.Got != 0 || op.Again > 0 {
			b.add(id, op)
		}
	}
}

// addToAll adds a call of which nobody knows which tasks it was about.
func (b *leaseBook) addToAll(op audit.Op) {
	for _, id := range b.tasks {
		b.add(id, op)
	}
}

// mayGiveUp says whether one more call, or claim, may have no answer, and counts it.
func (b *leaseBook) mayGiveUp(left *int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	*left--
	return *left >= 0
}

// event writes something about an attempt to the ledger.
func (b *leaseBook) event(kind audit.Kind, l *dispatch.Leased, word string) {
	e := audit.Event{Kind: kind, Queue: b.queue, ID: string(l.Task.ID), Token: l.Lease.Token, Attempt: l.Progress.Attempts + 1}
	if kind == audit.KindEnd {
		e.Result = word
	} else {
		e.Outcome = word
	}
	b.log.Append(e)
}

// judge looks for a task whose calls have no order that explains them.
func (b *leaseBook) judge(limit time.Duration) error {
	for id, calls := range b.calls {
		switch ok, err := audit.Linearizable(calls, limit); {
		case err != nil:
			return fmt.Errorf("task %s with %d calls: %w", id, len(calls), err)
		case !ok:
			slices.SortFunc(calls, func(a, b audit.Op) int { return cmp.Compare(a.Call, b.Call) })
			return fmt.Errorf("forged: no order explains the calls about task %s: %+v", id, calls)
		}
	}
	return nil
}
