package main

import (
	"context"
	"time"

	"github.com/dispatchkit/dispatch/bench/chaos/audit"
)

// Await reads the ledger, as all processes have written it so far, again and again until it says enough. It is for what only they
// can tell; a long ledger takes its time to be read.
func (r *Run) Await(ctx context.Context, limit time.Duration, what string, enough func(*audit.History) bool) error {
	return Until(ctx, limit, what, func() (bool, error) {
		h, err := audit.Read(r.ledgerDir())
		return err == nil && enough(h), err
	})
}

// History is the ledger as all processes have written it so far.
func (r *Run) History() (*audit.History, error) { return audit.Read(r.ledgerDir()) }

// count is how many events of a history match.
func count(h *audit.History, match func(*audit.Event) bool) int {
	n := 0
	for i := range h.Events {
		if match(&h.Events[i]) {
			n++
		}
	}
	return n
}
