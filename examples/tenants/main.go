// Tenants gives each of 1,000 tenants a queue of its own, made at run time, and shows what the others feel of one that is
// noisy: how long their tasks wait to be started while its slow ones are at work. A limit is what a tenant's contract says.
// It can be changed at any time, and then holds at once, on all processes together.
//
//	go run ./examples/tenants
//
// tenant.go makes the queues and the tasks, and worker.go works on them and takes the time.
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

const (
	places   = 16   // how many tasks run at once in the one process of this example
	contract = 4    // how many of a tenant may run at once, on all processes together
	backlog  = 1500 // slow tasks: more than all places can do in patience
	patience = 40 * time.Second
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := run(ctx, 1000); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, n int) error {
	server := miniredis.NewMiniRedis()
	if err := server.Start(); err != nil {
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
	return errors.Join(tell(ctx, tenants{client: w.client, n: n}, w), stop())
}

// tell serves all tenants three times: while nobody is noisy, while one is, and while that one is held to its contract.
func tell(ctx context.Context, ts tenants, w *worker) error {
	begin := time.Now()
	if err := ts.signUp(ctx); err != nil {
		return err
	}
	fmt.Printf("%d tenants signed up in %d ms; one process runs %d tasks at once\n", ts.n, time.Since(begin).Milliseconds(), places)

	quiet, err := ts.serveQuiet(ctx, w)
	if err != nil {
		return err
	}
	report("nobody is noisy", quiet)

	// Without a limit the noisy tenant has all the places that a process gives to one queue.
	for _, limit := range []int{0, contract} {
		if err := ts.setLimit(ctx, noisy, limit); err != nil {
			return err
		}
		if err := ts.makeNoise(ctx, w); err != nil {
			return err
		}
		quiet, err := ts.serveQuiet(ctx, w)
		if err != nil {
			return err
		}
		left, err := ts.endNoise(ctx)
		if err != nil {
			return err
		}
		peak := w.loudest()
		what := fmt.Sprintf("%s runs %d slow tasks at once", noisy, peak)
		if limit > 0 {
			what = fmt.Sprintf("%s is held to %d", noisy, limit)
		}
		report(what, quiet)
		switch {
		case left == 0:
			return fmt.Errorf("%s was done before the others, which shows nothing", noisy)
		case limit > 0 && peak > limit:
			return fmt.Errorf("%s ran %d tasks at once, more than %d", noisy, peak, limit)
		}
	}

	fmt.Printf("served %d/%d tenants\n", w.served(), ts.n)
	if w.served() != ts.n {
		return fmt.Errorf("not every tenant was served")
	}
	return nil
}

// report prints how long the tasks of the quiet tenants waited from Enqueue to their handler.
func report(what string, waits []time.Duration) {
	part := func(n int) float64 { return float64(waits[(len(waits)-1)*n/100].Microseconds()) / 1000 }
	fmt.Printf("%-43s the others wait %5.1f ms (median), %6.1f ms (p99)\n", what+":", part(50), part(99))
}
