// Delayed shows tasks that wait: for a while, for an instant, and under a name that keeps them single.
//
//	go run ./examples/delayed
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
	d, err := dispatch.New(store, dispatch.Options{})
	if err != nil {
		log.Fatal(err)
	}
	var reminded sync.WaitGroup
	begin := time.Now()
	dispatch.HandleFunc(d, "remind", func(ctx context.Context, what string) error {
		defer reminded.Done()
		fmt.Printf("after %4d ms: %s\n", time.Since(begin).Milliseconds(), what)
		return nil
	})
	if err := d.Start(ctx); err != nil {
		log.Fatal(err)
	}

	remind := func(what string, set func(*dispatch.Task)) {
		task, err := dispatch.NewTask("remind", what)
		if err != nil {
			log.Fatal(err)
		}
		set(&task)
		reminded.Add(1)
		id, err := d.Enqueue(ctx, task)
		if errors.Is(err, dispatch.ErrDuplicateTask) {
			fmt.Printf("              %q was not taken twice\n", id)
			reminded.Done()
		} else if err != nil {
			log.Fatal(err)
		}
	}
	remind("an instant later", func(t *dispatch.Task) { t.ScheduleTime = begin.Add(1200 * time.Millisecond) })
	remind("a while later", func(t *dispatch.Task) { t.Delay = 500 * time.Millisecond })
	remind("at once", func(t *dispatch.Task) {})
	for range 2 {
		remind("once, by name", func(t *dispatch.Task) { t.ID, t.Delay = "renew-42", 800*time.Millisecond })
	}

	reminded.Wait()
	if err := d.Stop(); err != nil {
		log.Fatal(err)
	}
}
