package dispatch_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/dispatchtest"
)

// The tables of spec/http-push.md, sections 2 and 3, under the names of section 11. When attempts are made is not what
// these tests are about.

// delivered advances the time until a receiver has had n attempts.
func (e *env) delivered(receiver *dispatchtest.Receiver, n int) []dispatchtest.Delivery {
	e.Helper()
	e.run()
	for range 100 {
		if all := receiver.Deliveries(); len(all) >= n {
			return all
		}
		e.advance(time.Hour)
	}
	e.Fatalf("%d deliveries after 100 hours, want %d", len(receiver.Deliveries()), n)
	return nil
}

// before is what the headers of an attempt say of those before it; "" is a header that is absent.
type before struct{ retries, executions, status, kind string }

func (b before) check(t *testing.T, attempt int, h http.Header) {
	t.Helper()
	for name, want := range map[string]string{
		dispatch.HeaderAttempt: fmt.Sprint(attempt), dispatch.HeaderRetryCount: b.retries, dispatch.HeaderExecutionCount: b.executions,
		dispatch.HeaderPreviousStatus: b.status, dispatch.HeaderPreviousError: b.kind,
	} {
		if got, set := h.Get(name), len(h.Values(name)); got != want || (set > 0) != (want != "") || set > 1 {
			t.Errorf("attempt %d: %s is %q, want %q", attempt, name, h.Values(name), want)
		}
	}
}

func TestGoldenHeadersOfRetries(t *testing.T) {
	e := newEnv(t, dispatch.Options{RetentionSucceeded: 10000 * time.Hour})
	receiver := dispatchtest.NewReceiver(t, 503, 404, 429, 500, 302, 200)
	id := e.enqueue(dispatch.Task{URL: receiver.URL})
	for i, d := range e.delivered(receiver, 6) {
		[]before{
			{"0", "0", "", ""},
			{"1", "0", "503", "non_2xx"},
			{"2", "1", "404", "non_2xx"},
			{"3", "2", "429", "non_2xx"},
			{"4", "2", "500", "non_2xx"},
			{"5", "3", "302", "non_2xx"},
		}[i].check(t, i+1, d.Header)
	}
	e.run()
	dispatchtest.RequireDelivered(t, receiver, id, 6)
	if p := e.task(id).Progress; p.Attempts != 6 || p.Responses != 6 || p.Executions != 4 {
		t.Errorf("progress %+v", p)
	}
}

// An attempt without a response leaves the number of executions as it is, and no status.
func TestGoldenHeadersAfterNoResponse(t *testing.T) {
	untrusted := httptest.NewUnstartedServer(nil)
	untrusted.Config.ErrorLog = log.New(io.Discard, "", 0)
	untrusted.StartTLS()
	defer untrusted.Close()
	closed := httptest.NewServer(nil)
	closed.Close()
	var e *env
	dialing := func(address string) http.RoundTripper {
		return &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, address)
		}}
	}
	for kind, fails := range map[dispatch.ErrorKind]http.RoundTripper{
		dispatch.KindTimeout: roundTripper(func(req *http.Request) (*http.Response, error) {
			e.store.Advance(15 * time.Second)
			<-req.Context().Done()
			return nil, req.Context().Err()
		}),
		dispatch.KindConnect: dialing(closed.Listener.Addr().String()),
		dispatch.KindDNS:     dialing(strings.Repeat("a", 64) + ".invalid:80"), // longer than a label can be: nobody is asked
		dispatch.KindTLS: roundTripper(func(req *http.Request) (*http.Response, error) {
			req = req.Clone(req.Context())
			req.URL.Scheme, req.URL.Host = "https", untrusted.Listener.Addr().String()
			return new(http.Transport).RoundTrip(req)
		}),
	} {
		t.Run(string(kind), func(t *testing.T) {
			works := new(http.Transport)
			defer works.CloseIdleConnections()
			attempts := 0
			e = newEnv(t, dispatch.Options{RetentionSucceeded: 10000 * time.Hour, HTTPClient: &http.Client{
				Transport: roundTripper(func(req *http.Request) (*http.Response, error) {
					if attempts++; attempts == 2 {
						return fails.RoundTrip(req)
					}
					return works.RoundTrip(req)
				})}})
			receiver := dispatchtest.NewReceiver(t, 404, 200)
			id := e.enqueue(dispatch.Task{URL: receiver.URL, Timeout: 15 * time.Second})
			all := e.delivered(receiver, 2)
			before{"0", "0", "", ""}.check(t, 1, all[0].Header)
			before{"2", "1", "", string(kind)}.check(t, 3, all[1].Header)
			e.run()
			p := e.task(id).Progress
			if p.Attempts != 3 || p.Responses != 2 || p.Executions != 2 {
				t.Errorf("progress %+v", p)
			}
			for _, a := range p.History {
				at, responded := a.RespondedAt()
				if responded != (a.Number != 2) || responded && !at.Equal(a.StartedAt.Add(a.Duration)) || !responded && !at.IsZero() {
					t.Errorf("attempt %+v responded at %v, %v", a, at, responded)
				}
			}
		})
	}
}

// What goes over the wire, to the letter: names as the task spells them, one User-Agent, which is Dispatch's, one
// Content-Type, and none of the headers by which receivers know a platform.
func TestGoldenRequest(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	url, requests := rawReceiver(t, 503, 204)
	e.enqueue(dispatch.Task{
		ID: "golden", URL: url + "/a%20b?c=d", Method: "PUT", Payload: []byte(`[1]`),
		Header: http.Header{
			"content-type": {"text/x-mine"}, "X-UPPER": {"1", "2"}, "x-lower": {""}, "Authorization": {"Basic x"},
			"User-Agent": {"theirs"}, "user-agent": {"theirs"}, "USER-AGENT": {"theirs"},
			"X-Google-A": {"theirs"}, "x-appengine-queuename": {"theirs"}, "X-AppEngine-TaskName": {"theirs"},
			"X-CloudTasks-TaskName": {"theirs"}, "X-CLOUDTASKS-QUEUENAME": {"theirs"}, "X-Googles": {"kept"},
		},
	})
	const first = `PUT /a%20b?c=d HTTP/1.1
Host: HOST
User-Agent: dispatch/VERSION
Content-Length: 3
Authorization: Basic x
X-Dispatch-Attempt: 1
X-Dispatch-Deadline: TIME
X-Dispatch-Execution-Count: 0
X-Dispatch-Fencing-Token: TOKEN
X-Dispatch-Queue: default
X-Dispatch-Retry-Count: 0
X-Dispatch-Scheduled-At: TIME
X-Dispatch-Task-Id: golden
X-Googles: kept
X-UPPER: 1
X-UPPER: 2
content-type: text/x-mine
x-lower: 
`
	second := strings.NewReplacer("Attempt: 1", "Attempt: 2", "Retry-Count: 0", "Retry-Count: 1",
		"X-Dispatch-Queue", "X-Dispatch-Previous-Error: non_2xx\nX-Dispatch-Previous-Status: 503\nX-Dispatch-Queue").Replace(first)
	for i, want := range []string{first, second} {
		e.run()
		for range 100 {
			if len(requests) > 0 {
				break
			}
			e.advance(time.Hour)
		}
		if got := within(t, "a request", requests); got != want {
			t.Errorf("attempt %d is\n%s\nwant\n%s", i+1, got, want)
		}
	}
}

// masks are the parts of a request that are not the same in every run.
var masks = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`Host: 127\.0\.0\.1:\d+`), "Host: HOST"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`), "TIME"},
	{regexp.MustCompile(`Token: \d+`), "Token: TOKEN"},
	{regexp.MustCompile(`dispatch/\d+\.\d+`), "dispatch/VERSION"},
}

// rawReceiver is a receiver that keeps the head of each request as it comes, masked and with bare line ends. It answers
// with the statuses in turn and closes each connection.
func rawReceiver(t *testing.T, statuses ...int) (url string, requests <-chan string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	heads := make(chan string, len(statuses))
	var wg sync.WaitGroup
	wg.Go(func() {
		for _, status := range statuses {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			var raw bytes.Buffer
			req, err := http.ReadRequest(bufio.NewReader(io.TeeReader(conn, &raw)))
			if err == nil {
				io.Copy(io.Discard, req.Body)
				fmt.Fprintf(conn, "HTTP/1.1 %d Status\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", status)
			}
			conn.Close()
			head, _, _ := strings.Cut(raw.String(), "\r\n\r\n")
			head = strings.ReplaceAll(head, "\r\n", "\n") + "\n"
			for _, m := range masks {
				head = m.pattern.ReplaceAllString(head, m.by)
			}
			heads <- head
		}
	})
	t.Cleanup(func() {
		listener.Close()
		wg.Wait()
	})
	return "http://" + listener.Addr().String(), heads
}

// HTTP/2 has lower case only, and a server refuses a request with any other: so names of all spellings arrive.
func TestGoldenHeadersOverHTTP2(t *testing.T) {
	type seen struct {
		proto  int
		header http.Header
	}
	requests := make(chan seen, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		requests <- seen{req.ProtoMajor, req.Header}
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	e := newEnv(t, dispatch.Options{HTTPClient: server.Client()})
	id := e.enqueue(dispatch.Task{
		URL: server.URL, Payload: []byte(`[1]`),
		Header: http.Header{"content-type": {"text/x-mine"}, "X-UPPER": {"1"}, "x-lower": {"2"}, "uSER-aGENT": {"theirs"}},
	})
	e.run()
	got := within(t, "the request", requests)
	if got.proto != 2 || e.seen.of(id) != "succeeded" {
		t.Errorf("sent over HTTP/%d, outcomes %q", got.proto, e.seen.of(id))
	}
	for name, want := range map[string]string{"Content-Type": "text/x-mine", "X-Upper": "1", "X-Lower": "2",
		"User-Agent": "dispatch/0.1", dispatch.HeaderTaskID: string(id)} {
		if values := got.header.Values(name); !slices.Equal(values, []string{want}) {
			t.Errorf("%s is %q, want %q", name, values, want)
		}
	}
}
