package dispatch_test

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

// openExample starts an embedded server for an example and returns a store on it. A program opens its own:
// redisstore.Open(ctx, "redis://localhost:6379", redisstore.Options{}).
func openExample() (store *redisstore.Store, done func()) {
	server := miniredis.NewMiniRedis()
	if err := server.Start(); err != nil {
		log.Fatal(err)
	}
	store, err := redisstore.Open(context.Background(), "redis://"+server.Addr(), redisstore.Options{Logger: silent})
	if err != nil {
		log.Fatal(err)
	}
	return store, func() {
		store.Close()
		server.Close()
	}
}

// runExample runs a dispatcher until wait returns.
func runExample(d *dispatch.Dispatcher, wait func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- d.Run(ctx) }()
	wait()
	cancel()
	if err := <-ended; err != nil {
		log.Fatal(err)
	}
}

func ExampleDispatcher_Run() {
	store, done := openExample()
	defer done()
	d, err := dispatch.New(store, dispatch.Options{Logger: silent})
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background()) // in a program: signal.NotifyContext
	dispatch.HandleFunc(d, "greet", func(_ context.Context, name string) error {
		fmt.Println("Hello,", name)
		cancel() // one is enough here
		return nil
	})
	task, err := dispatch.NewTask("greet", "Ada")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := d.Enqueue(ctx, task); err != nil {
		log.Fatal(err)
	}
	fmt.Println("stopped:", d.Run(ctx))
	// Output:
	// Hello, Ada
	// stopped: <nil>
}

func ExampleClient_Enqueue() {
	store, done := openExample()
	defer done()
	client, err := dispatch.NewClient(store, dispatch.ClientOptions{})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	invoice := dispatch.Task{
		ID:      "invoice-2026-001", // a name: the same invoice is never sent twice
		Queue:   "mail",
		URL:     "https://example.com/hooks/invoice",
		Payload: []byte(`{"invoice": "2026-001"}`),
		Delay:   time.Hour,
	}
	for range 2 {
		id, err := client.Enqueue(ctx, invoice)
		fmt.Println(id, errors.Is(err, dispatch.ErrDuplicateTask))
	}
	// Output:
	// invoice-2026-001 false
	// invoice-2026-001 true
}

func ExampleClient_EnqueueMany() {
	store, done := openExample()
	defer done()
	client, err := dispatch.NewClient(store, dispatch.ClientOptions{})
	if err != nil {
		log.Fatal(err)
	}
	results, err := client.EnqueueMany(context.Background(), []dispatch.Task{
		{ID: "a", Kind: "resize"},
		{ID: "b", Kind: "resize", Timeout: time.Millisecond},
		{ID: "c", Kind: "resize"},
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range results {
		fmt.Println(r.ID, r.Err)
	}
	// Output:
	// a <nil>
	// b dispatch: Task.Timeout: 1ms is not between 1s and 24h0m0s
	// c <nil>
}

func ExampleHandleFunc() {
	type resize struct {
		Image string
		Width int
	}
	store, done := openExample()
	defer done()
	d, err := dispatch.New(store, dispatch.Options{Logger: silent})
	if err != nil {
		log.Fatal(err)
	}
	resized := make(chan struct{})
	dispatch.HandleFunc(d, "resize", func(_ context.Context, r resize) error {
		fmt.Printf("%s to %d\n", r.Image, r.Width)
		close(resized)
		return nil
	})
	task, err := dispatch.NewTask("resize", resize{Image: "cat.png", Width: 64})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := d.Enqueue(context.Background(), task); err != nil {
		log.Fatal(err)
	}
	runExample(d, func() { <-resized })
	// Output: cat.png to 64
}

// A deploy creates its queues; what an operator has changed since stays.
func ExampleClient_EnsureQueue() {
	store, done := openExample()
	defer done()
	client, err := dispatch.NewClient(store, dispatch.ClientOptions{})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	deploy := func() {
		created, err := client.EnsureQueue(ctx, dispatch.Queue{Name: "mail", Rate: 50, MaxConcurrent: 10})
		fmt.Println("created:", created, err)
	}
	deploy()
	err = client.UpdateQueue(ctx, "mail", func(q *dispatch.Queue) error {
		q.Rate = 5
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	deploy()
	q, err := client.Queue(ctx, "mail")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("rate:", q.Rate)
	// Output:
	// created: true <nil>
	// created: false <nil>
	// rate: 5
}

// A handler's error says what becomes of its task.
func ExampleSkipRetry() {
	store, done := openExample()
	defer done()
	ended := make(chan dispatch.Event, 10)
	d, err := dispatch.New(store, dispatch.Options{
		Logger:   silent,
		Observer: func(e dispatch.Event) { ended <- e },
	})
	if err != nil {
		log.Fatal(err)
	}
	dispatch.HandleFunc(d, "charge", func(_ context.Context, card string) error {
		switch card {
		case "stolen":
			return dispatch.SkipRetry(errors.New("card is blocked")) // dead
		case "busy":
			return dispatch.RetryAfter(time.Hour, errors.New("try later")) // counts as an attempt
		case "weekend":
			return dispatch.Snooze(48 * time.Hour) // does not count
		}
		return nil
	})
	runExample(d, func() {
		for _, card := range []string{"good", "stolen", "busy", "weekend"} {
			task, err := dispatch.NewTask("charge", card)
			if err != nil {
				log.Fatal(err)
			}
			if _, err := d.Enqueue(context.Background(), task); err != nil {
				log.Fatal(err)
			}
			e := <-ended
			fmt.Println(card, "→", e.Outcome)
		}
	})
	// Output:
	// good → succeeded
	// stolen → dead
	// busy → retry
	// weekend → released
}

// What a handler writes elsewhere can carry the fencing token, so that a late write of an older attempt is refused.
func ExampleAttemptFrom() {
	store, done := openExample()
	defer done()
	d, err := dispatch.New(store, dispatch.Options{Logger: silent})
	if err != nil {
		log.Fatal(err)
	}
	written := make(chan struct{})
	highest := int64(0) // by the highest token so far
	d.Handle("report", dispatch.HandlerFunc(func(ctx context.Context, t *dispatch.Task) error {
		a, _ := dispatch.AttemptFrom(ctx)
		fmt.Println("attempt", a.Number, "is newer:", a.Token > highest)
		highest = a.Token
		if a.Number == 1 {
			return errors.New("disk full")
		}
		close(written)
		return nil
	}))
	task := dispatch.Task{Kind: "report", Retry: &dispatch.RetryConfig{MinBackoff: -1}}
	if _, err := d.Enqueue(context.Background(), task); err != nil {
		log.Fatal(err)
	}
	runExample(d, func() { <-written })
	// Output:
	// attempt 1 is newer: true
	// attempt 2 is newer: true
}

func ExampleDispatcher_Use() {
	store, done := openExample()
	defer done()
	d, err := dispatch.New(store, dispatch.Options{Logger: silent})
	if err != nil {
		log.Fatal(err)
	}
	handled := make(chan struct{})
	d.Use(func(next dispatch.Handler) dispatch.Handler {
		return dispatch.HandlerFunc(func(ctx context.Context, t *dispatch.Task) error {
			err := next.Handle(ctx, t)
			fmt.Println(t.Kind, err)
			close(handled)
			return err
		})
	})
	d.Handle("noop", dispatch.HandlerFunc(func(context.Context, *dispatch.Task) error { return nil }))
	if _, err := d.Enqueue(context.Background(), dispatch.Task{Kind: "noop"}); err != nil {
		log.Fatal(err)
	}
	runExample(d, func() { <-handled })
	// Output: noop <nil>
}

func ExampleBackoff() {
	rc := dispatch.RetryConfig{MinBackoff: 10 * time.Second, MaxBackoff: 5 * time.Minute, MaxDoublings: 3}
	for attempts := 1; attempts <= 8; attempts++ {
		fmt.Print(dispatch.Backoff(rc, attempts), " ")
	}
	// Output: 10s 20s 40s 1m20s 2m40s 4m0s 5m0s 5m0s
}
