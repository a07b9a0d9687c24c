package cluster

import (
	"context"
	"crypto/rand"
	"encoding/base32"
)

// WorkerID names one run of one process. A process that restarts is a new worker, so an ID never comes back and a
// lease held under an old ID can never be mistaken for a lease of the new process.
type WorkerID string

// NewWorkerID makes an ID of 80 random bits: "w-" and 16 characters of [a-z2-7]. It is safe for concurrent use.
func NewWorkerID() WorkerID {
	var random [10]byte
	rand.Read(random[:]) // never fails: crypto/rand ends the process when the system has no randomness
	return WorkerID("w-" + workerEncoding.EncodeToString(random[:]))
}

var workerEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

type workerIDKey struct{}

// WithWorkerID makes a context that carries the ID of the worker on whose behalf a call is made. A leader elector finds
// there whom it campaigns for.
func WithWorkerID(ctx context.Context, id WorkerID) context.Context {
	return context.WithValue(ctx, workerIDKey{}, id)
}

// WorkerIDFrom returns the ID that WithWorkerID put into a context, and whether there is one.
func WorkerIDFrom(ctx context.Context) (WorkerID, bool) {
	id, ok := ctx.Value(workerIDKey{}).(WorkerID)
	return id, ok
}
