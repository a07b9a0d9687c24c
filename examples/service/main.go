// Service is a process as one would deploy it: it takes orders in over HTTP, works on them in the background, and drains
// when it is told to stop. Without -redis it runs on an embedded server, places two orders itself, and ends.
//
//	go run ./examples/service
//	go run ./examples/service -redis redis://localhost:6379/0 -listen localhost:8080
package main

import (
	"context"
	"encoding/json"
	"flag"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/redisstore"
)

type order struct {
	Item string `json:"item"`
}

func main() {
	redisURL := flag.String("redis", "", "URL of a Redis server; empty runs a demonstration on an embedded one")
	listen := flag.String("listen", "localhost:8080", "address that takes orders, with -redis")
	flag.Parse()
	if *redisURL != "" {
		run(*redisURL, func(mux http.Handler, stop context.CancelFunc) {
			log.Print(http.ListenAndServe(*listen, mux))
			stop()
		})
		return
	}
	server, err := miniredis.Run()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	run("redis://"+server.Addr(), placeTwoOrders)
}

// snippet service
func run(redisURL string, serve func(http.Handler, context.CancelFunc)) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	store, err := redisstore.Open(ctx, redisURL, redisstore.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	d, err := dispatch.New(store, dispatch.Options{Leader: store.Elector(redisstore.ElectorOptions{})})
	if err != nil {
		log.Fatal(err)
	}
	dispatch.HandleFunc(d, "order", func(ctx context.Context, o order) error {
		log.Printf("packing %s", o.Item)
		return nil
	})
	d.Handle("count", dispatch.HandlerFunc(func(context.Context, *dispatch.Task) error {
		log.Print("counting the stock")
		return nil
	}))
	err = d.Schedule(ctx, dispatch.Entry{ // on every process that starts: only a change changes anything
		Name: "stocktaking", Spec: "30 6 * * mon-fri", Zone: "Europe/Berlin", Task: dispatch.Task{Kind: "count"},
	})
	if err != nil {
		log.Fatal(err)
	}
	go serve(takeOrders(d.Client), stop)
	if err := d.Run(ctx); err != nil { // until a signal comes; then it drains
		log.Fatal(err)
	}
}

// end snippet

// takeOrders stores each order as a task before it says yes.
func takeOrders(tasks *dispatch.Client) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var o order
		if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		task, err := dispatch.NewTask("order", o)
		if err == nil {
			_, err = tasks.Enqueue(r.Context(), task)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusAccepted)
	}
}

// placeTwoOrders plays the customers, and the operator who stops the service.
func placeTwoOrders(mux http.Handler, stop context.CancelFunc) {
	server := httptest.NewServer(mux)
	defer server.Close()
	for _, item := range []string{"tea", "cups"} {
		body := strings.NewReader(`{"item":"` + item + `"}`)
		response, err := http.Post(server.URL, "application/json", body)
		if err != nil {
			log.Fatal(err)
		}
		response.Body.Close()
		log.Printf("ordered %s: %s", item, response.Status)
	}
	time.Sleep(300 * time.Millisecond)
	stop()
}
