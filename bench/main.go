// Bench measures Dispatch on a real Redis: each figure several times, all figures in turn, medians and spread.
//
//	go run .                    starts a redis-server of its own
//	go run . -redis URL         uses one; its database should be empty
//	go run . -quick             a short run, to see that everything works
//	go run . -json              one line of JSON per figure
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/dispatchkit/dispatch/internal/redistest"
	"github.com/dispatchkit/dispatch/redisstore"
)

// figure is one thing to measure. run measures it over n tasks, and checks that all was handled that should be.
type figure struct {
	name, unit string
	n          int // tasks in a full run; a quick one has a tenth
	run        func(ctx context.Context, store *redisstore.Store, n int) (value float64, err error)
}

var figures = []figure{
	{"enqueue/many", "tasks/s", 200_000, enqueueMany},
	{"enqueue/single64", "tasks/s", 100_000, enqueueSingle},
	{"process/noop", "tasks/s", 100_000, processNoop},
	{"latency/noisy_pickup_p99", "ms", 100_000, noisyPickup},
}

func main() {
	redisURL := flag.String("redis", "", "URL of a Redis server with an empty database; empty starts one")
	quick := flag.Bool("quick", false, "a tenth of the tasks, once")
	asJSON := flag.Bool("json", false, "one line of JSON per figure")
	repeats := flag.Int("repeats", 5, "how often each figure is measured")
	flag.Parse()
	if *quick {
		*repeats = 1
	}
	if err := run(*redisURL, *repeats, *quick, *asJSON); err != nil {
		log.Fatal(err)
	}
}

func run(url string, repeats int, quick, asJSON bool) error {
	if url == "" {
		server, err := redistest.Launch(redistest.Config{})
		if err != nil {
			return err
		}
		defer server.Stop()
		url = server.URL()
	}
	samples := make(map[string][]float64)
	for i := range repeats {
		for _, f := range figures {
			n := f.n
			if quick {
				n /= 10
			}
			value, err := measure(url, fmt.Sprintf("bench-%d-%d", os.Getpid(), i), f, n)
			if err != nil {
				return fmt.Errorf("%s: %w", f.name, err)
			}
			samples[f.name] = append(samples[f.name], value)
		}
	}
	if !asJSON {
		fmt.Printf("%s, %d CPUs, payload 128 B, %d repeats, figures in turn\n\n", runtime.Version(), runtime.NumCPU(), repeats)
		fmt.Printf("%-26s %12s %12s %12s\n", "", "median", "min", "max")
	}
	for _, f := range figures {
		report(f, samples[f.name], asJSON)
	}
	return nil
}

// measure runs one figure on a store of its own, so that none finds what another has left.
func measure(url, prefix string, f figure, n int) (float64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	store, err := redisstore.Open(ctx, url, redisstore.Options{Prefix: prefix})
	if err != nil {
		return 0, err
	}
	defer store.Close()
	value, err := f.run(ctx, store, n)
	if err != nil {
		return 0, err
	}
	return value, store.DeleteQueue(ctx, queue)
}

func report(f figure, samples []float64, asJSON bool) {
	slices.Sort(samples)
	median := samples[len(samples)/2]
	if !asJSON {
		fmt.Printf("%-26s %12.1f %12.1f %12.1f %s\n", f.name, median, samples[0], samples[len(samples)-1], f.unit)
		return
	}
	json.NewEncoder(os.Stdout).Encode(map[string]any{"name": f.name, "value": median, "unit": f.unit, "peer": ""})
}
