package dispatch_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/dispatchtest"
)

func TestHTTPDelivery(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	receiver := dispatchtest.NewReceiver(t)
	id := e.enqueue(dispatch.Task{
		URL: receiver.URL + "/hook?a=b", Method: "PUT", Payload: []byte(`{"a":1}`), Queue: dispatch.DefaultQueue,
		Header:  http.Header{"Authorization": {"Bearer x"}, "X-Many": {"1", "2"}, "user-agent": {"mine"}},
		Delay:   time.Hour,
		Timeout: time.Minute,
	})
	e.run()
	dispatchtest.RequireDelivered(t, receiver, id, 0)
	e.advance(time.Hour)
	dispatchtest.RequireDelivered(t, receiver, id, 1)
	got := receiver.Deliveries()[0]
	if got.Method != "PUT" || got.Path != "/hook?a=b" || string(got.Body) != `{"a":1}` || got.ID != id || got.Attempt != 1 || got.Token == 0 {
		t.Errorf("delivered %+v", got)
	}
	for name, want := range map[string]string{
		"Authorization": "Bearer x", "X-Many": "1,2", "User-Agent": "dispatch/0.1", "Content-Type": "application/json",
		dispatch.HeaderTaskID: string(id), dispatch.HeaderQueue: "default", dispatch.HeaderAttempt: "1",
		dispatch.HeaderRetryCount:  "0",
		dispatch.HeaderScheduledAt: dispatchtest.Start.Add(time.Hour).Format("2006-01-02T15:04:05.000Z"),
		dispatch.HeaderDeadline:    dispatchtest.Start.Add(time.Hour + time.Minute).Format("2006-01-02T15:04:05.000Z"),
	} {
		if value := strings.Join(got.Header.Values(name), ","); value != want {
			t.Errorf("%s is %q, want %q", name, value, want)
		}
	}
	if e.seen.of(id) != "succeeded" || e.seen.list()[0].Attempt.Status != 200 {
		t.Errorf("events %+v", e.seen.list())
	}
	e.gone(id)
}

func TestContentType(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	receiver := dispatchtest.NewReceiver(t)
	for _, c := range []struct {
		name, payload, method string
		header                http.Header
		want                  []string
	}{
		{name: "JSON", payload: `[1]`, want: []string{"application/json"}},
		{name: "no JSON", payload: "hello", want: []string{"application/octet-stream"}},
		{name: "the task's own", payload: `[1]`, header: http.Header{"Content-Type": {"text/plain"}}, want: []string{"text/plain"}},
		{name: "the task's own in any casing", payload: `[1]`, header: http.Header{"content-type": {"text/plain"}}, want: []string{"text/plain"}},
		{name: "nothing to say it of", want: nil},
		{name: "nothing, GET", method: "GET", want: nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := len(receiver.Deliveries())
			e.enqueue(dispatch.Task{URL: receiver.URL, Method: c.method, Payload: []byte(c.payload), Header: c.header})
			e.run()
			if got := receiver.Deliveries()[before].Header.Values("Content-Type"); !slices.Equal(got, c.want) {
				t.Errorf("Content-Type is %q, want %q", got, c.want)
			}
		})
	}
}

// Header names go out as the task spells them.
func TestHeaderCasing(t *testing.T) {
	const lower, upper, agent = "x-lower", "X-UPPER", "User-agent"
	given := http.Header{}
	for i, name := range []string{lower, upper, agent} {
		given[name] = []string{[]string{"a", "b", "mine"}[i]}
	}
	var got map[string][]string
	e := newEnv(t, dispatch.Options{HTTPClient: &http.Client{Transport: roundTripper(func(req *http.Request) (*http.Response, error) {
		got = req.Header
		return &http.Response{StatusCode: 204, Body: http.NoBody}, nil
	})}})
	id := e.enqueue(dispatch.Task{URL: "http://example.com/", Header: given})
	e.run()
	if e.seen.of(id) != "succeeded" || !slices.Equal(got[lower], []string{"a"}) || !slices.Equal(got[upper], []string{"b"}) {
		t.Errorf("outcomes %q, sent %v", e.seen.of(id), got)
	}
	if !slices.Equal(got["User-Agent"], []string{"dispatch/0.1"}) || got[agent] != nil {
		t.Errorf("User-Agent is %q, and in the task's casing %q", got["User-Agent"], got[agent])
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// Attempts are repeated until a 2xx, with a rising number and fencing token; what failed stays readable.
func TestHTTPRetries(t *testing.T) {
	e := newEnv(t, dispatch.Options{RetentionSucceeded: time.Hour})
	receiver := dispatchtest.NewReceiver(t, 503, 404, 302, 429, 204)
	id := e.enqueue(dispatch.Task{URL: receiver.URL})
	e.run()
	for n := range 4 {
		wait := time.Second << n
		e.advance(wait - time.Millisecond)
		if got := len(receiver.Deliveries()); got != n+1 {
			t.Fatalf("%d deliveries before the backoff of attempt %d is over", got, n+1)
		}
		e.advance(time.Millisecond)
	}
	dispatchtest.RequireDelivered(t, receiver, id, 5)
	last := int64(0)
	for i, d := range receiver.Deliveries() {
		if d.Attempt != i+1 || d.Token <= last || d.Header.Get(dispatch.HeaderRetryCount) != string('0'+rune(i)) {
			t.Errorf("delivery %d is attempt %d with token %d after %d", i+1, d.Attempt, d.Token, last)
		}
		last = d.Token
	}
	info := e.task(id)
	var statuses []int
	for _, a := range info.Progress.History {
		statuses = append(statuses, a.Status)
		if (a.ErrorKind == dispatch.KindNon2xx) == (a.Number == 5) || (a.Error == "") == (a.Number < 5) {
			t.Errorf("attempt %+v", a)
		}
	}
	if info.State != dispatch.TaskSucceeded || !slices.Equal(statuses[:4], []int{503, 404, 302, 429}) {
		t.Errorf("the task is %s, its statuses %v", info.State, statuses)
	}
	if e.seen.of(id) != "retry retry retry retry succeeded" {
		t.Errorf("outcomes %q", e.seen.of(id))
	}
}

func TestHTTPFailures(t *testing.T) {
	answering := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		w.Write([]byte("short and stout"))
	}))
	defer answering.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	for _, c := range []struct {
		name, url string
		kind      dispatch.ErrorKind
		status    int
		text      string
	}{
		{"status and body", answering.URL, dispatch.KindNon2xx, 418, "short and stout"},
		{"no listener", gone.URL + "/?secret", dispatch.KindConnect, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newEnv(t, dispatch.Options{})
			id := e.enqueue(dispatch.Task{URL: c.url})
			e.run()
			last := lastAttempt(t, e.task(id))
			if e.seen.of(id) != "retry" || last.ErrorKind != c.kind || last.Status != c.status || last.Error == "" {
				t.Errorf("outcomes %q, attempt %+v", e.seen.of(id), last)
			}
			if c.text != "" && last.Error != c.text || strings.Contains(last.Error, "secret") {
				t.Errorf("the attempt keeps %q", last.Error)
			}
			if err := e.seen.list()[0].Err; err == nil || strings.Contains(err.Error(), "secret") {
				t.Errorf("the observer gets %v", err)
			}
		})
	}
}

// A receiver that does not answer is given up at the task's Timeout.
func TestHTTPTimeout(t *testing.T) {
	arrived := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		arrived <- struct{}{}
		<-req.Context().Done()
	}))
	defer server.Close()
	e := newEnv(t, dispatch.Options{})
	id := e.enqueue(dispatch.Task{URL: server.URL, Method: "GET", Timeout: 15 * time.Second})
	e.ok(e.d.Start(t.Context()))
	within(t, "the request", arrived)
	e.store.Advance(15*time.Second - time.Millisecond)
	e.store.Advance(time.Millisecond)
	e.run()
	last := lastAttempt(t, e.task(id))
	if e.seen.of(id) != "retry" || last.ErrorKind != dispatch.KindTimeout || last.Duration != 15*time.Second {
		t.Errorf("outcomes %q, attempt %+v", e.seen.of(id), last)
	}
}

// A request that is under way when the dispatcher stops is cancelled in the end, and costs no attempt.
func TestHTTPRequestEndsWithTheDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		client := &http.Client{Transport: roundTripper(func(req *http.Request) (*http.Response, error) {
			<-req.Context().Done()
			return nil, req.Context().Err()
		})}
		d := b.dispatcher(dispatch.Options{DrainTimeout: time.Minute, HTTPClient: client})
		id := b.enqueue(d, dispatch.Task{URL: "http://example.com/"})
		b.ok(d.Start(t.Context()))
		time.Sleep(time.Second)
		begin := time.Now()
		b.ok(d.Stop())
		if took := time.Since(begin); took != time.Minute {
			t.Errorf("Stop took %v", took)
		}
		info, err := d.Task(t.Context(), "default", id)
		if b.seen.of(id) != "released" || err != nil || info.State != dispatch.TaskWaiting || info.Progress.Attempts != 0 {
			t.Errorf("outcomes %q, task %+v, %v", b.seen.of(id), info, err)
		}
	})
}

func TestObserverSeesEveryOutcome(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	receiver := dispatchtest.NewReceiver(t, 500, 200)
	e.handle("k", func(ctx context.Context, task *dispatch.Task) error {
		e.store.Clock.Now()
		switch string(task.Payload) {
		case "retry":
			return errTest
		case "dead":
			return dispatch.SkipRetry(errTest)
		case "released":
			return dispatch.Snooze(time.Hour)
		case "discarded":
			return e.d.DeleteTask(ctx, task.Queue, task.ID)
		}
		return nil
	})
	ids := map[string]dispatch.TaskID{}
	for _, want := range []string{"succeeded", "retry", "dead", "released", "discarded"} {
		ids[want] = e.enqueue(dispatch.Task{Kind: "k", Payload: []byte(want), ScheduleTime: dispatchtest.Start.Add(time.Minute)})
	}
	web := e.enqueue(dispatch.Task{URL: receiver.URL})
	e.advance(time.Minute + 3*time.Second)
	for want, id := range ids {
		if e.seen.of(id) != want {
			t.Errorf("%s: %q", want, e.seen.of(id))
		}
	}
	for _, event := range e.seen.list() {
		late, kind := 3*time.Second, "k"
		if event.ID == web {
			late, kind = time.Minute+3*time.Second, ""
		}
		a := event.Attempt
		if event.Queue != "default" || event.Kind != kind || event.Late != late || a.Number != 1 || a.Token == 0 || a.Worker != e.d.Worker() ||
			!a.StartedAt.Equal(dispatchtest.Start.Add(time.Minute+3*time.Second)) {
			t.Errorf("event %+v", event)
		}
		failed := event.Outcome == dispatch.Retry || event.Outcome == dispatch.Dead
		if failed != (a.ErrorKind != "") || failed && event.Err == nil {
			t.Errorf("%s: error %v of kind %q", event.Outcome, event.Err, a.ErrorKind)
		}
	}
	if web := e.seen.of(web); web != "retry" {
		t.Errorf("HTTP: %q", web)
	}
}

func TestObserverMayPanic(t *testing.T) {
	var log logged
	var calls atomic.Int64
	e := newEnv(t, dispatch.Options{Logger: log.logger(), Observer: func(dispatch.Event) {
		calls.Add(1)
		panic("boom")
	}})
	e.counting()
	e.fill("default", 20)
	e.run()
	if c := e.counts("default"); c.TotalSucceeded != 20 || c.Running != 0 || calls.Load() != 20 {
		t.Errorf("counts are %+v after %d calls", c, calls.Load())
	}
	if log.count("observer panicked", "boom") != 20 {
		t.Errorf("logged:\n%s", log.String())
	}
}
