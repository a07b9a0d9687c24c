package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// receiver is a service that books orders. It knows nothing of Dispatch, only Standard Webhooks.
type receiver struct {
	url string

	mu       sync.Mutex
	verifier *standardwebhooks.Webhook
	stumbles bool            // the next answer is 503, although the order is booked
	booked   map[string]bool // by webhook-id
	last     delivery        // that was accepted
	requests int             // whose signature was good
	refused  int
}

// delivery is what went over the wire.
type delivery struct {
	header http.Header
	body   []byte
}

func startReceiver() (*receiver, func()) {
	r := &receiver{booked: make(map[string]bool)}
	server := httptest.NewServer(r)
	r.url = server.URL
	return r, server.Close
}

// trust makes a secret the only one that the receiver knows.
func (r *receiver) trust(secret string) error {
	verifier, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.verifier = verifier
	return nil
}

// stumble has the next delivery booked and answered with 503, as by a service that breaks down in between.
func (r *receiver) stumble() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stumbles = true
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, 1<<20))
	if err != nil {
		http.Error(w, "cannot read the body", http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	// The signature covers the ID, the time and the body, and a time that is minutes off is refused.
	if err := r.verifier.Verify(body, req.Header); err != nil {
		r.refused++
		fmt.Printf("  refused %s: %v\n", body, err)
		http.Error(w, "bad signature", http.StatusUnauthorized)
		return
	}
	r.requests++
	r.last = delivery{header: req.Header.Clone(), body: body}
	id := req.Header.Get(standardwebhooks.HeaderWebhookID)
	switch {
	case r.booked[id]:
		fmt.Printf("  known   %s: %s again, not booked twice\n", body, id)
	case r.stumbles:
		r.booked[id], r.stumbles = true, false
		fmt.Printf("  booked  %s: %s, but the answer is 503\n", body, id)
		w.WriteHeader(http.StatusServiceUnavailable)
	default:
		r.booked[id] = true
		fmt.Printf("  booked  %s: %s\n", body, id)
	}
}

func (r *receiver) lastDelivery() delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

func (r *receiver) totals() (requests, booked, refused int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.requests, len(r.booked), r.refused
}
