package worker_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/dispatchkit/dispatch/worker"
)

func ExampleDeliverer_Deliver() {
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Attempt") == "1" {
			http.Error(w, "not yet", http.StatusServiceUnavailable)
		}
	}))
	defer receiver.Close()
	d := worker.NewDeliverer(worker.Options{Egress: worker.Egress{AllowPrivate: true}}) // the receiver is on loopback
	defer d.Close()

	for attempt := range 2 {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		res := d.Deliver(ctx, worker.Request{
			URL:    receiver.URL,
			Header: http.Header{"X-Attempt": {fmt.Sprint(attempt + 1)}},
			Body:   []byte(`{"user":42}`),
		})
		cancel()
		fmt.Printf("%d %q %q\n", res.Status, res.Kind, res.Snippet)
	}
	// Output:
	// 503 "non_2xx" "not yet\n"
	// 200 "" ""
}

func ExampleDeliverer_Deliver_cancelled() {
	d := worker.NewDeliverer(worker.Options{})
	defer d.Close()
	errStopping := errors.New("stopping")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errStopping)

	res := d.Deliver(ctx, worker.Request{URL: "http://127.0.0.1/"})
	fmt.Println(res.Kind, res.Err, errors.Is(res.Err, errStopping))
	// Output: cancelled stopping true
}

func ExamplePool() {
	stop := make(chan struct{})
	pool := worker.NewPool(1, 1, func(name string) {
		<-stop
		fmt.Println("ran", name)
	})
	pool.Add("letters", "a", "b", "c")

	// To stop is to take back what waits and to wait for what runs.
	withdrawn := pool.Withdraw(nil)
	close(stop)
	pool.Wait(context.Background())
	fmt.Println("withdrawn", withdrawn)
	// Output:
	// ran a
	// withdrawn [b c]
}
