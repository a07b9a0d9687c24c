// Results shows what whoever enqueues a task can do with it afterwards: wait for its result, find its dead letter when it
// has failed for good, bring it back, and put right what was wrong with it while it waits.
//
//	go run ./examples/results
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/redisstore"
)

func main() {
	server := must(miniredis.Run())
	defer server.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	run(ctx, "redis://"+server.Addr())
}

func run(ctx context.Context, redisURL string) {
	// snippet greet
	store := must(redisstore.Open(ctx, redisURL, redisstore.Options{}))
	defer store.Close()
	d := must(dispatch.New(store, dispatch.Options{}))
	dispatch.HandleFunc(d, "greet", func(ctx context.Context, name string) error {
		_, err := fmt.Fprintf(dispatch.ResultWriter(ctx), "Hello, %s!", name)
		return err
	})
	check(d.Start(ctx))

	task := must(dispatch.NewTask("greet", "Ada"))
	task.Retention = time.Minute // how long it stays readable, with its result
	id := must(d.Enqueue(ctx, task))
	done := must(d.Wait(ctx, dispatch.DefaultQueue, id))
	fmt.Printf("%s\n", done.Progress.Result) // Hello, Ada!
	// end snippet
	mend(ctx, d.Client)
	check(d.Stop())
}

// mend enqueues a task that no handler can read, and puts it right.
func mend(ctx context.Context, c *dispatch.Client) {
	guests := dispatch.Queue{Name: "guests", Rate: 50, MaxConcurrent: 2, DeadLetterQueue: "unreadable"}
	guests.Retry.MaxAttempts = 1
	must(c.EnsureQueue(ctx, guests))
	// Letters are tasks: in a queue that is not paused they are attempted like any other.
	must(c.EnsureQueue(ctx, dispatch.Queue{Name: "unreadable"}))
	check(c.PauseQueue(ctx, "unreadable"))

	bob := dispatch.Task{Queue: "guests", Kind: "greet", Retention: time.Minute, Unique: &dispatch.Unique{}}
	bob.Payload = []byte("Bob") // without the quotes of JSON
	id := must(c.Enqueue(ctx, bob))
	if again, err := c.Enqueue(ctx, bob); again != id || !errors.Is(err, dispatch.ErrDuplicateTask) {
		log.Fatalf("the same task again is %s: %v", again, err)
	}
	expect("the task is", string(must(c.Wait(ctx, "guests", id)).State), "dead")
	for letter, err := range c.Tasks(ctx, "unreadable", dispatch.Filter{}) {
		check(err)
		expect("a letter is from", letter.Metadata[dispatch.HeaderDeadLetterQueue], "guests")
	}
	expect("and there are so many:", fmt.Sprint(must(c.Counts(ctx, "unreadable")).Ready), "1")

	// It is brought back, and put right before anybody attempts it.
	check(c.PauseQueue(ctx, "guests"))
	must(c.ReplayDead(ctx, "guests", dispatch.Filter{}, dispatch.ReplayOptions{}))
	check(c.EditTask(ctx, "guests", id, func(t *dispatch.Task) error {
		t.Payload = []byte(`"Bob"`)
		return nil
	}))
	check(c.ResumeQueue(ctx, "guests"))
	expect("the result is", string(must(c.Wait(ctx, "guests", id)).Progress.Result), "Hello, Bob!")
}

func expect(what, got, want string) {
	fmt.Printf("%s %s\n", what, got)
	if got != want {
		log.Fatalf("want %s", want)
	}
}

// must returns v, or ends the program with what went wrong.
func must[T any](v T, err error) T {
	check(err)
	return v
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
