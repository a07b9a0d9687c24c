// Quickstart runs the main job of Dispatch on an embedded Redis: it enqueues 1,000 tasks that call a URL and 1,000 tasks
// for a Go handler, and delivers them all, although the receiver fails every tenth one the first time.
//
//	go run ./examples/quickstart
//	go run ./examples/quickstart -redis redis://localhost:6379/0
//	go run ./examples/quickstart -cluster host1:6379,host2:6379,host3:6379
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/redisstore"
	"github.com/dispatchkit/dispatch/worker"
)

const (
	httpTasks    = 1000
	handlerTasks = 1000
)

func main() {
	redisURL := flag.String("redis", "", "URL of a Redis server; empty starts an embedded one")
	cluster := flag.String("cluster", "", "host:port,host:port,… of a Redis Cluster")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := run(ctx, *redisURL, *cluster); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, redisURL, cluster string) error {
	url, stopRedis, err := serverURL(redisURL, cluster)
	if err != nil {
		return err
	}
	defer stopRedis()
	store, err := redisstore.Open(ctx, url, redisstore.Options{})
	if err != nil {
		return err
	}
	defer store.Close()

	receiver, stopReceiver := startReceiver()
	defer stopReceiver()

	// The dispatcher claims due tasks and delivers them.
	var seen tally
	d, err := dispatch.New(store, dispatch.Options{
		Observer: seen.observe,
		Egress:   worker.Egress{AllowPrivate: true}, // the receiver is on this machine
	})
	if err != nil {
		return err
	}
	dispatch.HandleFunc(d, "greet", func(ctx context.Context, g greeting) error {
		seen.greeted(g.Name)
		return nil
	})
	if err := d.Start(ctx); err != nil {
		return err
	}

	begin := time.Now()
	if err := enqueue(ctx, d.Client, receiver); err != nil {
		return err
	}
	wait(ctx, &seen, term.IsTerminal(int(os.Stdout.Fd())))
	if err := d.Stop(); err != nil {
		return err
	}

	fmt.Printf("in %v: %d attempts, %d of them answered 500 and were repeated; the receiver saw %d tasks, the handler %d\n",
		time.Since(begin).Round(time.Millisecond), seen.attempts.Load(), seen.retries.Load(), receiver.distinct(), seen.names())
	fmt.Printf("delivered %d/%d\n", seen.succeeded.Load(), httpTasks+handlerTasks)
	if receiver.distinct() != httpTasks || seen.names() != handlerTasks {
		return fmt.Errorf("not every task was delivered")
	}
	return nil
}

// enqueue makes the queues and fills them, once in bulk and once task by task.
func enqueue(ctx context.Context, client *dispatch.Client, r *receiver) error {
	quick := dispatch.RetryConfig{MinBackoff: 200 * time.Millisecond}
	for _, q := range []dispatch.Queue{{Name: "quickstart-http", Retry: quick}, {Name: "quickstart-go"}} {
		if _, err := client.EnsureQueue(ctx, q); err != nil {
			return err
		}
	}

	// snippet bulk
	bulk := make([]dispatch.Task, httpTasks)
	for i := range bulk {
		bulk[i] = dispatch.Task{
			Queue:   "quickstart-http",
			URL:     fmt.Sprintf("%s/orders/%d", r.url, i),
			Payload: fmt.Appendf(nil, `{"order":%d}`, i),
		}
	}
	results, err := client.EnqueueMany(ctx, bulk)
	if err != nil {
		return err
	}
	for _, result := range results {
		if result.Err != nil {
			return result.Err
		}
	}
	// end snippet

	for i := range handlerTasks {
		task, err := dispatch.NewTask("greet", greeting{Name: fmt.Sprintf("guest %d", i)})
		if err != nil {
			return err
		}
		task.Queue = "quickstart-go"
		if _, err := client.Enqueue(ctx, task); err != nil {
			return err
		}
	}
	return nil
}

type greeting struct {
	Name string `json:"name"`
}
