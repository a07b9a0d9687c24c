// Handlers shows Go handlers: typed payloads, middleware, errors that steer retries, and what a handler knows of its
// attempt.
//
//	go run ./examples/handlers
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/redisstore"
)

type email struct {
	To string `json:"to"`
}

func main() {
	server, err := miniredis.Run()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	store, err := redisstore.Open(ctx, "redis://"+server.Addr(), redisstore.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	var ended sync.WaitGroup
	ended.Add(3)
	d, err := dispatch.New(store, dispatch.Options{Observer: func(e dispatch.Event) {
		fmt.Printf("%-9s attempt %d: %v\n", e.Outcome, e.Attempt.Number, e.Err)
		if e.Outcome == dispatch.Succeeded || e.Outcome == dispatch.Dead {
			ended.Done()
		}
	}})
	if err != nil {
		log.Fatal(err)
	}

	// Middleware wraps every handler.
	d.Use(func(next dispatch.Handler) dispatch.Handler {
		return dispatch.HandlerFunc(func(ctx context.Context, t *dispatch.Task) error {
			begin := time.Now()
			err := next.Handle(ctx, t)
			fmt.Printf("          %s took %v\n", t.Kind, time.Since(begin).Round(time.Millisecond))
			return err
		})
	})

	// snippet handler
	// The payload arrives as the handler's own type. The error says what becomes of the task.
	dispatch.HandleFunc(d, "email", func(ctx context.Context, e email) error {
		attempt, _ := dispatch.AttemptFrom(ctx)
		switch {
		case e.To == "":
			return dispatch.SkipRetry(errors.New("no address")) // dead at once
		case e.To == "busy@example.com" && attempt.Number == 1:
			return dispatch.RetryAfter(300*time.Millisecond, errors.New("mailbox busy")) // again in 300 ms
		}
		fmt.Printf("          mail to %s, fencing token %d\n", e.To, attempt.Token)
		return nil
	})
	// end snippet

	for _, e := range []email{{To: "ann@example.com"}, {To: "busy@example.com"}, {}} {
		task, err := dispatch.NewTask("email", e)
		if err != nil {
			log.Fatal(err)
		}
		if _, err := d.Enqueue(ctx, task); err != nil {
			log.Fatal(err)
		}
	}

	// Run blocks until its context ends, and then drains.
	work, stop := context.WithCancel(ctx)
	go func() { ended.Wait(); stop() }()
	if err := d.Run(work); err != nil {
		log.Fatal(err)
	}
}
