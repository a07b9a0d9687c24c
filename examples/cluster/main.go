// Cluster runs three dispatchers, each a process of its own, on one Redis, and kills the leader in the middle of the
// work. Another one takes over: it gives the tasks of the dead process to the living, and the cron entry ticks on. At
// the end every task was delivered, and every tick came once.
//
//	go run ./examples/cluster
//	go run ./examples/cluster -redis redis://localhost:6379/0
//
// story.go tells what happens, worker.go is what each of the three processes runs, fleet.go keeps them, ledger.go counts
// what they report, and watch.go waits for it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/redisstore"
)

const (
	workers    = 3
	orderQueue = "orders"
	tickQueue  = "ticks"
	tickEntry  = "tick"
	// prefix begins all keys, so that the example meets nobody else's tasks on your server. Run it once at a time there.
	prefix = "cluster-example"
)

func main() {
	if url := os.Getenv(workerEnv); url != "" {
		if err := work(url); err != nil {
			log.Fatal(err)
		}
		return
	}
	redisURL := flag.String("redis", "", "URL of a Redis server; empty starts one")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, 50*time.Second)
	defer cancel()
	if err := run(ctx, *redisURL); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, redisURL string) (err error) {
	url, stopRedis, err := serverURL(redisURL)
	if err != nil {
		return err
	}
	defer stopRedis()
	store, err := redisstore.Open(ctx, url, redisstore.Options{Prefix: prefix})
	if err != nil {
		return err
	}
	defer store.Close()
	client, err := dispatch.NewClient(store, dispatch.ClientOptions{})
	if err != nil {
		return err
	}
	if err := forget(ctx, client); err != nil { // an earlier run may have been interrupted
		return err
	}
	defer forget(context.WithoutCancel(ctx), client)

	s := story{store: store, client: client, ledger: newLedger()}
	// Whatever happens, a panic included, no process outlives this function.
	defer func() {
		s.fleet.kill()
		if err != nil {
			s.fleet.printLogs(os.Stderr)
		}
	}()
	return s.tell(ctx, url)
}

// forget removes what the example has stored.
func forget(ctx context.Context, client *dispatch.Client) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for _, err := range []error{
		client.DeleteEntry(ctx, tickEntry), client.DeleteQueue(ctx, orderQueue), client.DeleteQueue(ctx, tickQueue),
	} {
		if err != nil && !errors.Is(err, dispatch.ErrEntryNotFound) && !errors.Is(err, dispatch.ErrQueueNotFound) {
			return err
		}
	}
	return nil
}

var began = time.Now()

// say prints a line of the story.
func say(format string, args ...any) {
	fmt.Printf("%6.2f s  %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
}
