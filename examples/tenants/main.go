// Tenants gives each of 1,000 tenants a queue of its own, made at run time, and shows what the others feel of one that is
// noisy: how long their tasks wait to be started while its slow ones are at work. A limit is what a tenant's contract says.
// It can be changed at any time, and then holds at once, on all processes together.
//
//	go run ./examples/tenants
//
// acts.go tells what happens, tenant.go makes the queues and the tasks, and worker.go works on them and takes the time.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/dispatchkit/dispatch/redisstore"
)

func main() {
	if err := run(context.Background(), 1000); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, tenantCount int) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	server, err := miniredis.Run()
	if err != nil {
		return err
	}
	defer server.Close()
	store, err := redisstore.Open(ctx, "redis://"+server.Addr(), redisstore.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	w, stop, err := startWorker(ctx, store)
	if err != nil {
		return err
	}
	ts := tenants{client: w.client, n: tenantCount}
	return errors.Join(play(ctx, ts, w), stop())
}

// play plays the acts, and checks that nobody was forgotten.
func play(ctx context.Context, ts tenants, w *worker) error {
	begin := time.Now()
	if err := ts.signUp(ctx); err != nil {
		return err
	}
	fmt.Printf("%d tenants signed up in %d ms; one process runs %d tasks at once\n",
		ts.n, time.Since(begin).Milliseconds(), places)
	if err := silence(ctx, ts, w); err != nil {
		return err
	}
	for _, limit := range []int{0, contract} {
		if err := noise(ctx, ts, w, limit); err != nil {
			return err
		}
	}
	fmt.Printf("served %d/%d tenants\n", w.served(), ts.n)
	if w.served() != ts.n {
		return errors.New("not every tenant was served")
	}
	return nil
}
