package dispatch_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/worker"
)

// forgetful is a receiver that answers the first request of each connection, and reads the second and hangs up: the
// moment in which net/http sends again what looks as if it might be sent twice, a request with an Idempotency-Key above
// all.
type forgetful struct {
	url    string
	client *http.Client // nil is the dispatcher's own

	mu   sync.Mutex
	seen map[string][]string // the numbers of the attempts that came, by task
}

func (f *forgetful) note(h http.Header) {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := h.Get(dispatch.HeaderTaskID)
	f.seen[id] = append(f.seen[id], h.Get(dispatch.HeaderAttempt))
}

func newForgetfulHTTP1(t *testing.T) *forgetful {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &forgetful{url: "http://" + listener.Addr().String(), seen: map[string][]string{}}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer c.Close()
				r := bufio.NewReader(c)
				for n := 1; n <= 2; n++ {
					req, err := http.ReadRequest(r)
					if err != nil {
						return
					}
					io.Copy(io.Discard, req.Body)
					f.note(req.Header)
					if n == 1 {
						io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
					}
				}
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		running.Wait()
	})
	return f
}

type connKey struct{}

// counted is a connection of the receiver, and how many requests came over it.
type counted struct {
	net.Conn
	requests atomic.Int64
}

func newForgetfulHTTP2(t *testing.T) *forgetful {
	f := &forgetful{seen: map[string][]string{}}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		f.note(r.Header)
		if r.ProtoMajor != 2 {
			t.Errorf("came over %s", r.Proto)
		}
		if c := r.Context().Value(connKey{}).(*counted); c.requests.Add(1) == 2 {
			c.Close()
			<-r.Context().Done()
		}
		w.WriteHeader(204)
	}))
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, &counted{Conn: c.(*tls.Conn).NetConn()})
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	transport := worker.NewTransport(worker.Egress{AllowPrivate: true})
	transport.TLSClientConfig = &tls.Config{RootCAs: roots}
	t.Cleanup(transport.CloseIdleConnections)
	f.url, f.client = server.URL, &http.Client{Transport: transport}
	return f
}

// The receiver of a task sees as many requests as there are attempts recorded, each with its number, also when it hangs
// up on a connection that was used before. An Idempotency-Key is the receiver's, and no leave to send twice.
func TestOneRequestPerAttempt(t *testing.T) {
	key, xKey := http.Header{"Idempotency-Key": {"k"}}, http.Header{"X-Idempotency-Key": {"k"}}
	body := []byte("payload")
	withBody := []dispatch.Task{
		{Header: key, Payload: body}, {Header: xKey, Payload: body}, {Payload: body}, {},
		{Method: "PUT", Payload: body}, {Method: "PUT", Header: key, Payload: body}, {Method: "PATCH", Header: key, Payload: body},
	}
	// Without a body they are safe from net/http with the dispatcher's own client only; see the package worker.
	all := append(slices.Clone(withBody), dispatch.Task{Header: key}, dispatch.Task{Header: xKey}, dispatch.Task{Method: "PUT", Header: key},
		dispatch.Task{Method: "GET"}, dispatch.Task{Method: "GET", Header: key}, dispatch.Task{Method: "DELETE"}, dispatch.Task{Method: "HEAD"})
	for name, c := range map[string]struct {
		receiver func(*testing.T) *forgetful
		tasks    []dispatch.Task
	}{"HTTP/1.1": {newForgetfulHTTP1, all}, "HTTP/2": {newForgetfulHTTP2, withBody}} {
		t.Run(name, func(t *testing.T) {
			f := c.receiver(t)
			e := newEnv(t, dispatch.Options{HTTPClient: f.client, RetentionSucceeded: time.Hour})
			hungUp := 0
			for _, task := range c.tasks {
				for range 2 {
					task.URL, task.Retry = f.url, &noWait
					id := e.enqueue(task)
					for n := 0; e.seen.real(id) != "succeeded" && e.seen.real(id) != "retry succeeded" && n < 10; n++ {
						e.run()
					}
					info := e.task(id)
					var recorded []string
					for _, a := range info.Progress.History {
						recorded = append(recorded, strconv.Itoa(a.Number))
					}
					f.mu.Lock()
					seen := slices.Clone(f.seen[string(id)])
					f.mu.Unlock()
					if !slices.Equal(seen, recorded) || info.Progress.Attempts != len(seen) || info.State != dispatch.TaskSucceeded {
						t.Errorf("%s with %v: the receiver saw the attempts %v, recorded are %v of %d, and the task is %s",
							task.Method, task.Header, seen, recorded, info.Progress.Attempts, info.State)
					}
					if first := info.Progress.History[0]; len(recorded) > 1 {
						hungUp++
						if first.ErrorKind != dispatch.KindConnect || first.Status != 0 {
							t.Errorf("%s with %v: the attempt that was hung up on is %+v", task.Method, task.Header, first)
						}
					}
				}
			}
			if hungUp < len(c.tasks) {
				t.Errorf("of %d tasks %d were hung up on: connections were not used again", 2*len(c.tasks), hungUp)
			}
		})
	}
}
