package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/bench/chaos/audit"
)

// receiver is an HTTP server to which tasks are delivered. It writes to the ledger when a request begins and when it has dealt with
// it, by the headers that came; of the worker that sent it, it knows nothing. It owns a goroutine for its listener and those of its
// requests.
type receiver struct {
	name   string
	log    *audit.Log
	lease  time.Duration // of the attempts that come
	answer func(rc *receiver, w http.ResponseWriter, q *http.Request) (how string)

	url    string
	server *http.Server
	closed chan struct{} // tells answers that wait
	busy   sync.WaitGroup
}

// Receiver starts a receiver that ends with the run. Its answers are made by many goroutines at once, and say how they ended in the
// ledger's words.
func (r *Run) Receiver(
	name string, lease time.Duration, answer func(rc *receiver, w http.ResponseWriter, q *http.Request) string,
) (*receiver, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	rc := &receiver{
		name: name, log: r.Log, lease: lease, answer: answer, url: "http://" + listener.Addr().String() + "/", closed: make(chan struct{}),
	}
	rc.server = &http.Server{Handler: rc}
	rc.busy.Go(func() { rc.server.Serve(listener) }) // returns when it is closed
	r.atEnd(rc.close)
	return rc, nil
}

func (rc *receiver) close() {
	close(rc.closed)
	rc.server.Close()
	rc.busy.Wait()
}

// ServeHTTP implements http.Handler.
func (rc *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	rc.busy.Add(1)
	defer rc.busy.Done()
	e, err := attemptOf(q.Header)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	e.Who, e.Worker = rc.name, audit.AnyWorker
	start := e
	start.Kind, start.Lease = audit.KindStart, rc.lease.Microseconds()
	rc.log.Append(start)
	e.Kind, e.Result = audit.KindEnd, rc.answer(rc, w, q)
	rc.log.Append(e)
}

// attemptOf is what the headers of a request say of the attempt.
func attemptOf(h http.Header) (audit.Event, error) {
	attempt, err1 := strconv.Atoi(h.Get(dispatch.HeaderAttempt))
	token, err2 := strconv.ParseInt(h.Get(dispatch.HeaderFencingToken), 10, 64)
	e := audit.Event{Queue: h.Get(dispatch.HeaderQueue), ID: h.Get(dispatch.HeaderTaskID), Attempt: attempt, Token: token}
	err := errors.Join(err1, err2)
	if err == nil && (e.Queue == "" || e.ID == "") {
		err = errors.New("no task")
	}
	return e, err
}

// pause waits, and says whether to go on: not when ctx has ended or the run is over.
func (rc *receiver) pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-rc.closed:
	}
	return false
}

// forever is longer than a run.
const forever = 24 * time.Hour

// answerWell says that all is well.
func answerWell(_ *receiver, w http.ResponseWriter, _ *http.Request) string {
	w.WriteHeader(http.StatusNoContent)
	return audit.EndOK
}

// answerNever says nothing for as long as somebody waits.
func answerNever(rc *receiver, _ http.ResponseWriter, q *http.Request) string {
	rc.pause(q.Context(), forever)
	return audit.EndCut
}

// answerLate answers that all is well when nobody waits any more.
func answerLate(after time.Duration) func(*receiver, http.ResponseWriter, *http.Request) string {
	return func(rc *receiver, w http.ResponseWriter, _ *http.Request) string {
		if !rc.pause(context.Background(), after) {
			return audit.EndCut
		}
		return answerWell(rc, w, nil)
	}
}

// dripBody answers that all is well, with a body that comes a byte a second and never ends.
func dripBody(rc *receiver, w http.ResponseWriter, q *http.Request) string {
	for ok := true; ok; ok = rc.pause(q.Context(), time.Second) {
		w.Write([]byte("."))
		http.NewResponseController(w).Flush()
	}
	return audit.EndCut
}

// dripHead begins an answer whose header comes a byte a second and never ends.
func dripHead(rc *receiver, w http.ResponseWriter, _ *http.Request) string {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return audit.EndFail
	}
	defer conn.Close()
	// Who has hijacked a connection is not told of its end: the reads are to find it.
	ctx, gone := context.WithCancel(context.Background())
	rc.busy.Go(func() {
		defer gone()
		conn.Read(make([]byte, 1))
	})
	_, err = fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nX-Drip: ")
	for err == nil && rc.pause(ctx, time.Second) {
		_, err = fmt.Fprint(conn, ".")
	}
	return audit.EndCut
}

// closeInHead begins a header and closes the connection, and closeInBody does so in the body.
func closeInHead(_ *receiver, w http.ResponseWriter, _ *http.Request) string {
	return closeAfter(w, "HTTP/1.1 200 OK\r\nContent-Le", audit.EndFail)
}

func closeInBody(_ *receiver, w http.ResponseWriter, _ *http.Request) string {
	return closeAfter(w, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf of it", audit.EndOK)
}

func closeAfter(w http.ResponseWriter, text, how string) string {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return audit.EndFail
	}
	defer conn.Close()
	fmt.Fprint(conn, text)
	return how
}
