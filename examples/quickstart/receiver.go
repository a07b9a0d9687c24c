package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	"github.com/dispatchkit/dispatch"
)

// receiver is the service that the HTTP tasks call. Every tenth order fails the first time.
type receiver struct {
	url string

	mu   sync.Mutex
	seen map[string]bool // task IDs that were accepted
}

func startReceiver() (*receiver, func()) {
	r := &receiver{seen: make(map[string]bool)}
	server := httptest.NewServer(r)
	r.url = server.URL
	return r, server.Close
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if strings.HasSuffix(req.URL.Path, "7") && req.Header.Get(dispatch.HeaderAttempt) == "1" {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[req.Header.Get(dispatch.HeaderTaskID)] = true
}

// distinct is how many different tasks were accepted.
func (r *receiver) distinct() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.seen)
}
