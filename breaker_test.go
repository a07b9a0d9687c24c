package dispatch_test

import (
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

// real is the outcomes of one task without the attempts that were not made.
func (s *events) real(id dispatch.TaskID) string {
	var words []string
	for _, e := range s.list() {
		if e.ID == id && e.Attempt.ErrorKind != dispatch.KindShed {
			words = append(words, string(e.Outcome))
		}
	}
	return strings.Join(words, " ")
}

// requireShedHistory demands that a task's history has its attempts in order, and what was not made beside the attempt
// that it would have been, once.
func requireShedHistory(t testing.TB, info *dispatch.TaskInfo, made int) (shed int) {
	t.Helper()
	last, before := 0, dispatch.ErrorKind("")
	for _, a := range info.Progress.History {
		if a.ErrorKind == dispatch.KindShed {
			shed++
			if before == dispatch.KindShed || a.Number != last+1 || a.Status != 0 || a.Error == "" || a.Token == 0 || a.StartedAt.IsZero() {
				t.Errorf("%+v is kept after attempt %d of kind %q", a, last, before)
			}
		} else if last++; a.Number != last {
			t.Errorf("%+v is kept as attempt %d", a, last)
		}
		before = a.ErrorKind
	}
	if last != made || info.Progress.Attempts != made {
		t.Errorf("%d attempts are kept and %d counted, want %d", last, info.Progress.Attempts, made)
	}
	return shed
}

// A receiver that hangs gets one place of a process, and not all. Its tasks are really tried until they are dead, and
// the tasks for others go on.
func TestBreakerHangingReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const tasks, places, attempts = 20, 16, 2
		const atOnce = places * 3 / 4   // of one queue
		const timeout = 9 * time.Second // less than the 10 s after which another probe may go
		b := newBubble(t)
		var waiting, sent atomic.Int64
		var numbers record[string]
		client := &http.Client{Transport: roundTripper(func(req *http.Request) (*http.Response, error) {
			if req.URL.Host == "lives.test" {
				return &http.Response{StatusCode: 204, Body: http.NoBody}, nil
			}
			sent.Add(1)
			waiting.Add(1)
			defer waiting.Add(-1)
			numbers.add(req.Header.Get(dispatch.HeaderTaskID) + " " + req.Header.Get(dispatch.HeaderAttempt))
			want := map[string]string{"1": "", "2": "timeout"}[req.Header.Get(dispatch.HeaderAttempt)]
			if got := req.Header.Get(dispatch.HeaderPreviousError); got != want {
				t.Errorf("the previous attempt of %s is %q, want %q", req.Header.Get(dispatch.HeaderAttempt), got, want)
			}
			<-req.Context().Done()
			return nil, req.Context().Err()
		})}
		d := b.dispatcher(dispatch.Options{GlobalConcurrency: places, HTTPClient: client})
		_, err := d.EnsureQueue(t.Context(), dispatch.Queue{Name: dispatch.DefaultQueue, NoThrottle: true})
		b.ok(err)
		var ids []dispatch.TaskID
		for range tasks {
			ids = append(ids, b.enqueue(d, dispatch.Task{
				URL: "http://hangs.test/", Timeout: timeout, Retry: &dispatch.RetryConfig{MaxAttempts: attempts},
			}))
		}
		begin := time.Now()
		b.ok(d.Start(t.Context()))
		time.Sleep(timeout - time.Second)
		if n := waiting.Load(); n != atOnce {
			t.Errorf("%d attempts wait before it is known that the receiver hangs, want %d", n, atOnce)
		}
		most := int64(0)
		for second := 0; b.seen.count(dispatch.Dead) < tasks && second < 1000; second++ {
			time.Sleep(2 * time.Second)
			if time.Since(begin) > 2*timeout { // the first to end were followed by others, until all of them had ended
				most = max(most, waiting.Load())
			}
			id := b.enqueue(d, dispatch.Task{Queue: "lives", URL: "http://lives.test/"})
			time.Sleep(100 * time.Millisecond)
			if got := b.seen.of(id); got != "succeeded" {
				t.Fatalf("a task for a receiver that lives: %q", got)
			}
		}
		if most != 1 {
			t.Errorf("%d attempts wait at once, want 1", most)
		}
		shed := 0
		for _, id := range ids {
			info, err := d.Task(t.Context(), dispatch.DefaultQueue, id)
			b.ok(err)
			if got := b.seen.real(id); got != "retry dead" || info.State != dispatch.TaskDead {
				t.Errorf("task %s is %s after %q", id, info.State, got)
			}
			shed += requireShedHistory(t, info, attempts)
		}
		all := numbers.all()
		slices.Sort(all)
		if n := len(slices.Compact(all)); n != tasks*attempts || sent.Load() != tasks*attempts || shed == 0 {
			t.Errorf("%d different attempts in %d requests, want %d; %d times the history tells of some not made",
				n, sent.Load(), tasks*attempts, shed)
		}
		for _, e := range b.seen.list() {
			if e.Attempt.ErrorKind == dispatch.KindShed && (e.Outcome != dispatch.Released || e.Err == nil || e.Attempt.StartedAt.IsZero()) {
				t.Errorf("event %+v", e)
			}
		}
		b.ok(b.redis.CheckInvariants(t.Context(), dispatch.DefaultQueue))
	})
}

// A receiver that refuses connections is tried at the pace of its tasks, which end by their RetryConfig.
func TestBreakerRefusingReceiver(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	lives := dispatchtest.NewReceiver(t)
	for name, threshold := range map[string]int{"by default": 0, "at once": 1, "off": -1} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, dispatch.Options{BreakerThreshold: threshold})
			e.ensure(dispatch.Queue{Name: dispatch.DefaultQueue, NoThrottle: true})
			var ids, others []dispatch.TaskID
			for range 50 {
				ids = append(ids, e.enqueue(dispatch.Task{URL: gone.URL, Retry: &dispatch.RetryConfig{MaxAttempts: 3, MinBackoff: -1}}))
				others = append(others, e.enqueue(dispatch.Task{URL: lives.URL}))
			}
			e.run()
			for _, id := range others {
				dispatchtest.RequireDelivered(t, lives, id, 1)
			}
			for n := 0; e.seen.count(dispatch.Dead) < len(ids); n++ {
				if e.advance(time.Minute); n > 500 {
					t.Fatalf("%d tasks are dead after %d minutes", e.seen.count(dispatch.Dead), n)
				}
			}
			for _, id := range ids {
				requireShedHistory(t, e.task(id), 3)
				if got := e.seen.real(id); got != "retry retry dead" {
					t.Errorf("outcomes %q", got)
				}
			}
			if released := e.seen.count(dispatch.Released); released > 0 && threshold < 0 {
				t.Errorf("%d attempts were shed, with the breaker off", released)
			}
			if got := e.counts(dispatch.DefaultQueue); got.TotalRetried != 2*50 || got.Dead != 50 {
				t.Errorf("counts %+v", got)
			}
			e.check(dispatch.DefaultQueue)
		})
	}
}
