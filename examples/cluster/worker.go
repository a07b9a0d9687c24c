package main

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/cluster"
	"github.com/dispatchkit/dispatch/redisstore"
)

// workerEnv holds the URL of the Redis, and makes this program a worker.
const workerEnv = "CLUSTER_EXAMPLE_REDIS"

// report is a line of a worker's standard output.
type report struct {
	// Fact is "up" with this Worker, "handled" with a task, or "lost" with a task and the Worker that had it and died.
	Fact   string           `json:"fact"`
	Worker cluster.WorkerID `json:"worker"`
	Kind   string           `json:"kind,omitempty"`
	Task   dispatch.TaskID  `json:"task,omitempty"`
	// Started is when the attempt began, by the clock of Redis.
	Started time.Time `json:"started,omitzero"`
}

// work is the whole of a worker: a dispatcher with handlers, until it is told to stop.
func work(redisURL string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go func() {
		io.Copy(io.Discard, os.Stdin) // ends with the process that started this one, however that ends
		stop()
	}()
	store, err := redisstore.Open(ctx, redisURL, redisstore.Options{Prefix: prefix})
	if err != nil {
		return err
	}
	defer store.Close()

	// All times are much shorter than the defaults, which are made for networks and busy machines, not for a show.
	d, err := dispatch.New(store, dispatch.Options{
		Leader:            store.Elector(redisstore.ElectorOptions{TTL: 2 * time.Second, Retry: 200 * time.Millisecond}),
		HeartbeatInterval: 300 * time.Millisecond,
		StaleJobThreshold: time.Second,
		SweepInterval:     300 * time.Millisecond,
		LeaseGrace:        500 * time.Millisecond,
		DrainTimeout:      5 * time.Second,
		GlobalConcurrency: 8,
		Observer:          reportLost,
	})
	if err != nil {
		return err
	}
	d.Use(reportHandled)
	d.Handle("order", dispatch.HandlerFunc(pack))
	d.Handle("tick", dispatch.HandlerFunc(func(context.Context, *dispatch.Task) error { return nil }))
	tell(report{Fact: "up", Worker: d.Worker()})
	return d.Run(ctx)
}

// pack takes its time, and heeds its context: a worker that is cut off from Redis must not go on with what is about to
// be somebody else's.
func pack(ctx context.Context, _ *dispatch.Task) error {
	select {
	case <-time.After(200*time.Millisecond + rand.N(300*time.Millisecond)):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// reportHandled is a middleware that tells of work that was done, before the store knows: a worker that is killed in
// between has told, and the task is done twice. Had it to tell afterwards, the end of a task could go untold.
func reportHandled(next dispatch.Handler) dispatch.Handler {
	return dispatch.HandlerFunc(func(ctx context.Context, t *dispatch.Task) error {
		err := next.Handle(ctx, t)
		if a, ok := dispatch.AttemptFrom(ctx); ok && err == nil {
			tell(report{Fact: "handled", Worker: a.Worker, Kind: t.Kind, Task: t.ID, Started: a.StartedAt})
		}
		return err
	})
}

// reportLost tells of attempts that this worker, as the leader, has settled for another one.
func reportLost(e dispatch.Event) {
	if e.Attempt.ErrorKind == dispatch.KindLeaseLost {
		tell(report{Fact: "lost", Worker: e.Attempt.Worker, Kind: e.Kind, Task: e.ID, Started: e.Attempt.StartedAt})
	}
}

var stdout sync.Mutex

// tell writes a report, by a single write.
func tell(r report) {
	stdout.Lock()
	defer stdout.Unlock()
	if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
		log.Print(err)
	}
}
