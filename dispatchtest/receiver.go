package dispatchtest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/dispatchkit/dispatch"
)

// Delivery is one request that a receiver got.
type Delivery struct {
	// ID, Attempt and Token are the task's ID, the attempt's number and its fencing token, from the headers.
	ID      dispatch.TaskID
	Attempt int
	Token   int64
	// Method, Path (with query), Header and Body are the request's.
	Method, Path string
	Header       http.Header
	Body         []byte
	// Status is what was answered.
	Status int
}

// Receiver is an HTTP server on the loopback interface that records what it gets. It is safe for concurrent use.
type Receiver struct {
	// URL is where it listens, without a path.
	URL string

	mu         sync.Mutex
	statuses   []int
	deliveries []Delivery
}

// NewReceiver starts a receiver, which ends with the test. It answers with the given statuses in turn, then with the
// last of them for ever; with none it always answers 200.
func NewReceiver(t testing.TB, statuses ...int) *Receiver {
	r := &Receiver{statuses: statuses}
	server := httptest.NewServer(http.HandlerFunc(r.receive))
	t.Cleanup(server.Close)
	r.URL = server.URL
	return r
}

func (r *Receiver) receive(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	d := Delivery{
		ID: dispatch.TaskID(req.Header.Get(dispatch.HeaderTaskID)), Method: req.Method, Path: req.URL.RequestURI(),
		Header: req.Header, Body: body,
	}
	d.Attempt, _ = strconv.Atoi(req.Header.Get(dispatch.HeaderAttempt))
	d.Token, _ = strconv.ParseInt(req.Header.Get(dispatch.HeaderFencingToken), 10, 64)
	r.mu.Lock()
	d.Status = r.nextStatus()
	r.deliveries = append(r.deliveries, d)
	r.mu.Unlock()
	w.WriteHeader(d.Status)
}

// nextStatus takes the next status of the script. r.mu is held.
func (r *Receiver) nextStatus() int {
	if len(r.statuses) == 0 {
		return http.StatusOK
	}
	status := r.statuses[0]
	if len(r.statuses) > 1 {
		r.statuses = r.statuses[1:]
	}
	return status
}

// Deliveries returns what came so far, oldest first.
func (r *Receiver) Deliveries() []Delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Delivery(nil), r.deliveries...)
}

// RequireDelivered fails the test unless the receiver got the task exactly attempts times and answered the last of them
// with 2xx.
func RequireDelivered(t testing.TB, r *Receiver, id dispatch.TaskID, attempts int) {
	t.Helper()
	var got []Delivery
	for _, d := range r.Deliveries() {
		if d.ID == id {
			got = append(got, d)
		}
	}
	if len(got) == attempts && (attempts == 0 || got[attempts-1].Status/100 == 2) {
		return
	}
	var seen strings.Builder
	for _, d := range got {
		fmt.Fprintf(&seen, "\n\tattempt %d, answered %d", d.Attempt, d.Status)
	}
	t.Fatalf("dispatchtest.RequireDelivered: task %s was delivered %d times, want %d with success at the end%s\n"+
		"(has RunUntilIdle run, and has Advance moved the time past the backoff?)", id, len(got), attempts, seen.String())
}
