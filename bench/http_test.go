package main

import (
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/dispatchtest"
	"github.com/dispatchkit/dispatch/worker"
)

// The bare loop would be no limit if it sent less, and no fair one if it sent more, than Dispatch.
func TestBareLoopSendsWhatDispatchSends(t *testing.T) {
	store, receiver := dispatchtest.NewStore(t), dispatchtest.NewReceiver(t)
	d := dispatchtest.NewDispatcher(t, store, dispatch.Options{Egress: worker.Egress{AllowPrivate: true}})
	if _, err := d.Enqueue(t.Context(), dispatch.Task{Queue: queue, URL: receiver.URL, Payload: payload}); err != nil {
		t.Fatal(err)
	}
	dispatchtest.RunUntilIdle(t, d)
	got := receiver.Deliveries()
	if len(got) != 1 {
		t.Fatalf("%d deliveries", len(got))
	}
	sent := maps.Clone(got[0].Header)
	for _, name := range []string{"Accept-Encoding", "Content-Length"} { // the transport's
		delete(sent, name)
	}
	requireSameSizes(t, sent, bareHeader(0, time.Now()))
}

func requireSameSizes(t *testing.T, sent, bare http.Header) {
	t.Helper()
	for name := range sent {
		if len(sent.Get(name)) != len(bare.Get(name)) {
			t.Errorf("%s: Dispatch sends %q, the bare loop %q", name, sent.Get(name), bare.Get(name))
		}
	}
	for name := range bare {
		if _, ok := sent[name]; !ok {
			t.Errorf("%s is sent by the bare loop only", name)
		}
	}
}
