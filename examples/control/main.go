// Control shows what an operator can do while workers are at work: pause a queue and run one of its tasks all the same,
// cancel a task that runs, and replay one that has failed for good, when its fault is mended. After each step it counts and
// lists the tasks, and ends with an error if they are not where they should be.
//
//	go run ./examples/control
//
// operator.go holds the steps, and printer.go the process that is operated.
package main

import (
	"context"
	"errors"
	"log"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/redisstore"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
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
	// A client is all that an operator needs, in whatever process.
	client, err := dispatch.NewClient(store, dispatch.ClientOptions{})
	if err != nil {
		return err
	}
	p, stop, err := startPrinter(ctx, store)
	if err != nil {
		return err
	}
	o := operator{client: client, printer: p}
	for _, step := range []func(context.Context) error{o.pauseAndRun, o.cancel, o.replay} {
		if err = step(ctx); err != nil {
			break
		}
	}
	return errors.Join(err, stop())
}
