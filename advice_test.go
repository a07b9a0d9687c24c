package dispatch_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/dispatchtest"
)

func TestProgressAfterTimeout(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	gate, came := make(chan struct{}), make(chan struct{}, 1)
	hang := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		came <- struct{}{}
		<-gate
	}))
	defer hang.Close()
	defer close(gate)
	id := e.enqueue(dispatch.Task{URL: hang.URL, Timeout: time.Second})
	e.ok(e.d.Start(t.Context()))
	within(t, "the request", came)
	e.advance(time.Second)
	info := e.task(id)
	if p := info.Progress; p.Attempts != 1 || p.Responses != 0 || p.Executions != 0 || lastAttempt(t, info).ErrorKind != dispatch.KindTimeout {
		t.Errorf("progress %+v", p)
	}
}

// What a receiver says of a retry counts: a later time, and never.
func TestReceiversAdvice(t *testing.T) {
	at := func(d time.Duration) string { return dispatchtest.Start.Add(d).Format(http.TimeFormat) }
	for name, c := range map[string]struct {
		header map[string]string
		wait   time.Duration // 0 is dead
	}{
		"nothing":               {nil, time.Second},
		"seconds":               {map[string]string{"Retry-After": "90"}, 90 * time.Second},
		"sooner than backoff":   {map[string]string{"Retry-After": "0"}, time.Second},
		"date":                  {map[string]string{"Retry-After": at(time.Minute), "Date": at(0)}, time.Minute},
		"date of another clock": {map[string]string{"Retry-After": at(time.Hour), "Date": at(59 * time.Minute)}, time.Minute},
		"longer than a day":     {map[string]string{"Retry-After": "1000000000"}, 24 * time.Hour},
		"no retry":              {map[string]string{"X-Dispatch-No-Retry": "true"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, dispatch.Options{})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				for name, value := range c.header {
					w.Header().Set(name, value)
				}
				w.WriteHeader(http.StatusServiceUnavailable)
			}))
			defer server.Close()
			id := e.enqueue(dispatch.Task{URL: server.URL})
			e.run()
			info := e.task(id)
			switch wait := info.Due.Sub(dispatchtest.Start); {
			case c.wait == 0 && info.State != dispatch.TaskDead:
				t.Errorf("the task is %s", info.State)
			case c.wait > 0 && wait != c.wait:
				t.Errorf("the next attempt is due after %v, want %v", wait, c.wait)
			}
		})
	}
}
