package dispatch_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dispatchkit/dispatch"
)

// machine is a bubble with one queue, one dispatcher and a receiver that is told what to answer.
type machine struct {
	*bubble
	d *dispatch.Dispatcher
	// answer stands in for the receiver; status 0 is no answer at all.
	answer func(*http.Request) (status int)
	calls  []http.Header
}

const machineQueue = "machine"

// hourly retries after an hour, twice.
var hourly = dispatch.RetryConfig{MinBackoff: time.Hour, MaxBackoff: time.Hour, MaxAttempts: 2}

func newMachine(t *testing.T, answer func(*http.Request) int) *machine {
	m := &machine{bubble: newBubble(t), answer: answer}
	client := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		m.calls = append(m.calls, r.Header)
		status := m.answer(r)
		if status == 0 {
			return nil, errors.New("connection reset")
		}
		return &http.Response{StatusCode: status, Header: make(http.Header), Body: http.NoBody, Request: r}, nil
	})}
	m.d = m.dispatcher(dispatch.Options{HTTPClient: client, DedupWindow: 3 * time.Hour, RetentionFailed: 4 * time.Hour,
		HeartbeatInterval: 5 * time.Hour, StaleJobThreshold: 12 * time.Hour, ReconcileInterval: time.Minute, SweepInterval: 30 * time.Second})
	_, err := m.d.EnsureQueue(t.Context(), dispatch.Queue{Name: machineQueue, Retry: hourly})
	m.ok(err)
	return m
}

// start lets what is due be attempted, now and from now on.
func (m *machine) start() {
	m.Helper()
	m.ok(m.d.Start(m.Context()))
	synctest.Wait()
}

func (m *machine) put(t dispatch.Task) dispatch.TaskID {
	m.Helper()
	t.Queue, t.URL = machineQueue, "http://receiver.test/"
	return m.enqueue(m.d, t)
}

// is demands a state and numbers of attempts and responses, and returns the task.
func (m *machine) is(id dispatch.TaskID, state dispatch.TaskState, attempts, responses int) *dispatch.TaskInfo {
	m.Helper()
	synctest.Wait()
	info, err := m.d.Task(m.Context(), machineQueue, id)
	m.ok(err)
	if info.State != state || info.Progress.Attempts != attempts || info.Progress.Responses != responses {
		m.Errorf("task %s is %s after %d attempts and %d responses, want %s, %d, %d", id, info.State,
			info.Progress.Attempts, info.Progress.Responses, state, attempts, responses)
	}
	return info
}

// gone demands that a task is not there, and was called so often in all.
func (m *machine) gone(id dispatch.TaskID, calls int) {
	m.Helper()
	synctest.Wait()
	_, err := m.d.Task(m.Context(), machineQueue, id)
	requireError(m, err, dispatch.ErrTaskNotFound)
	if len(m.calls) != calls {
		m.Errorf("%d calls, want %d", len(m.calls), calls)
	}
}

// taken demands that a name is, or is not, free.
func (m *machine) taken(id dispatch.TaskID, want bool) {
	m.Helper()
	_, err := m.d.Enqueue(m.Context(), dispatch.Task{ID: id, Queue: machineQueue, URL: "http://receiver.test/", Delay: 1000 * time.Hour})
	if got := errors.Is(err, dispatch.ErrDuplicateTask); got != want || err != nil && !got {
		m.Errorf("name %s: error %v, taken should be %v", id, err, want)
	}
}

func status(s int) func(*http.Request) int { return func(*http.Request) int { return s } }

// hangs answers when the exchange is aborted, which is not at all.
func hangs(r *http.Request) int {
	<-r.Context().Done()
	return 0
}

// The rows of the task's state machine, as of a managed push queue; the numbers are theirs. Where such a queue forgets an
// exhausted task, it is dead here and retained.
func TestTransitions(t *testing.T) {
	for _, row := range []struct {
		name   string
		answer func(*http.Request) int
		run    func(m *machine)
	}{
		{"01 created", status(200), func(m *machine) {
			ready, scheduled := m.put(dispatch.Task{}), m.put(dispatch.Task{Delay: time.Hour})
			now := m.is(ready, dispatch.TaskWaiting, 0, 0)
			later := m.is(scheduled, dispatch.TaskWaiting, 0, 0)
			if !later.Due.Equal(later.CreatedAt.Add(time.Hour)) || now.Due.After(now.CreatedAt) || !now.Progress.FirstAttempt.IsZero() {
				m.Errorf("due %v and %v", now.Due, later.Due)
			}
		}},
		{"02 refused: the name is taken", status(200), func(m *machine) {
			m.put(dispatch.Task{ID: "a"})
			m.taken("a", true)
			m.start()
			m.gone("a", 1)
			m.taken("a", true)
			m.gone("a", 1)
		}},
		{"03 scheduled to ready", status(200), func(m *machine) {
			id := m.put(dispatch.Task{Delay: time.Hour})
			m.start()
			time.Sleep(time.Hour - time.Millisecond)
			m.is(id, dispatch.TaskWaiting, 0, 0)
			time.Sleep(2 * time.Millisecond)
			m.gone(id, 1)
		}},
		{"04 ready to dispatched", hangs, func(m *machine) {
			id := m.put(dispatch.Task{})
			m.start()
			if info := m.is(id, dispatch.TaskRunning, 0, 0); info.Token == 0 || info.LeasedBy != m.d.Worker() || len(m.calls) != 1 {
				m.Errorf("token %d, worker %s, %d calls", info.Token, info.LeasedBy, len(m.calls))
			}
		}},
		{"05 run now: scheduled, ready, dispatched to dispatched", hangs, func(m *machine) {
			id := m.put(dispatch.Task{Delay: time.Hour})
			m.ok(m.d.PauseQueue(m.Context(), machineQueue))
			m.start()
			m.ok(m.d.RunTask(m.Context(), machineQueue, id))
			first := m.is(id, dispatch.TaskRunning, 0, 0)
			m.ok(m.d.RunTask(m.Context(), machineQueue, id))
			if second := m.is(id, dispatch.TaskRunning, 0, 0); second.Token <= first.Token || len(m.calls) != 2 {
				m.Errorf("token %d after %d, %d calls", second.Token, first.Token, len(m.calls))
			}
		}},
		{"06 dispatched to succeeded", status(204), func(m *machine) {
			id := m.put(dispatch.Task{})
			m.start()
			m.gone(id, 1)
		}},
		{"07 dispatched to scheduled: a response that is no success", status(404), func(m *machine) {
			id := m.put(dispatch.Task{})
			m.start()
			info := m.is(id, dispatch.TaskWaiting, 1, 1)
			if h := info.Progress.History[0]; h.Status != 404 || info.Progress.Executions != 1 || !info.Due.Equal(info.Progress.LastAttempt.Add(time.Hour)) {
				m.Errorf("attempt %+v, executions %d, due %v", h, info.Progress.Executions, info.Due)
			}
			time.Sleep(2 * time.Hour)
			m.is(id, dispatch.TaskDead, 2, 2)
		}},
		{"07 a response of 500 and above is no execution", status(500), func(m *machine) {
			id := m.put(dispatch.Task{})
			m.start()
			if info := m.is(id, dispatch.TaskWaiting, 1, 1); info.Progress.Executions != 0 {
				m.Errorf("%d executions", info.Progress.Executions)
			}
		}},
		{"08 dispatched to scheduled: no response", status(0), func(m *machine) {
			id := m.put(dispatch.Task{})
			m.start()
			if info := m.is(id, dispatch.TaskWaiting, 1, 0); info.Progress.History[0].ErrorKind != dispatch.KindConnect {
				m.Errorf("attempt %+v", info.Progress.History[0])
			}
		}},
		{"08 dispatched to scheduled: a time-out", hangs, func(m *machine) {
			id := m.put(dispatch.Task{Timeout: time.Minute})
			m.start()
			time.Sleep(time.Minute + time.Second)
			if h := m.is(id, dispatch.TaskWaiting, 1, 0).Progress.History[0]; h.ErrorKind != dispatch.KindTimeout || h.Duration != time.Minute {
				m.Errorf("attempt %+v", h)
			}
		}},
		{"09 dispatched to exhausted", status(503), func(m *machine) {
			id := m.put(dispatch.Task{ID: "a"})
			m.start()
			time.Sleep(2 * time.Hour)
			m.is(id, dispatch.TaskDead, 2, 2)
			m.taken("a", true)
			time.Sleep(5 * time.Hour)
			m.gone(id, 2)
		}},
		{"10 waiting to deleted", status(200), func(m *machine) {
			id := m.put(dispatch.Task{ID: "a"})
			m.ok(m.d.DeleteTask(m.Context(), machineQueue, id))
			m.start()
			m.gone(id, 0)
			m.taken("a", true)
		}},
		{"11 dispatched to deleted", func(r *http.Request) int {
			time.Sleep(time.Second)
			return 500
		}, func(m *machine) {
			id := m.put(dispatch.Task{ID: "a"})
			m.start()
			m.ok(m.d.DeleteTask(m.Context(), machineQueue, id))
			time.Sleep(3 * time.Hour)
			m.gone(id, 1)
			if got := m.seen.of(id); got != "discarded" {
				m.Errorf("outcomes %q", got)
			}
		}},
		{"12 purged: what was stored before the call, and nothing after", status(200), func(m *machine) {
			m.ok(m.d.PauseQueue(m.Context(), machineQueue))
			old := m.put(dispatch.Task{ID: "a"})
			m.ok(m.d.PurgeQueue(m.Context(), machineQueue))
			young := m.put(dispatch.Task{}) // in the same millisecond
			m.ok(m.d.ResumeQueue(m.Context(), machineQueue))
			m.start()
			m.gone(young, 1)
			m.gone(old, 1)
			m.taken("a", true)
		}},
		{"13 expired, even if never attempted", status(500), func(m *machine) {
			m.ok(m.d.UpdateQueue(m.Context(), machineQueue, func(q *dispatch.Queue) error {
				q.TaskTTL = 30 * time.Minute
				return nil
			}))
			m.ok(m.d.PauseQueue(m.Context(), machineQueue))
			waits := m.put(dispatch.Task{})
			time.Sleep(time.Hour)
			m.ok(m.d.ResumeQueue(m.Context(), machineQueue))
			failed := m.put(dispatch.Task{})
			m.start()
			m.gone(waits, 1)
			time.Sleep(2 * time.Hour)
			m.gone(failed, 1)
			if got := m.seen.of(failed); got != "retry" {
				m.Errorf("outcomes %q", got) // it was younger when it failed
			}
		}},
		{"14 the queue is deleted", hangs, func(m *machine) {
			runs, waits := m.put(dispatch.Task{}), m.put(dispatch.Task{Delay: time.Hour})
			m.start()
			m.ok(m.d.DeleteQueue(m.Context(), machineQueue))
			m.gone(runs, 1)
			m.gone(waits, 1)
			_, err := m.d.Queue(m.Context(), machineQueue)
			requireError(m, err, dispatch.ErrQueueNotFound)
			if got := m.seen.of(runs); got != "discarded" {
				m.Errorf("outcomes %q", got)
			}
		}},
		{"15 paused: it waits, and goes on", status(200), func(m *machine) {
			m.ok(m.d.PauseQueue(m.Context(), machineQueue))
			m.start()
			id := m.put(dispatch.Task{})
			time.Sleep(time.Hour)
			m.is(id, dispatch.TaskWaiting, 0, 0)
			m.ok(m.d.PauseQueue(m.Context(), machineQueue))
			m.ok(m.d.ResumeQueue(m.Context(), machineQueue))
			m.ok(m.d.ResumeQueue(m.Context(), machineQueue))
			m.gone(id, 1)
		}},
		{"16 paused during an attempt: it ends, and its retry waits", func(r *http.Request) int {
			time.Sleep(time.Minute)
			return 500
		}, func(m *machine) {
			id := m.put(dispatch.Task{})
			m.start()
			m.ok(m.d.PauseQueue(m.Context(), machineQueue))
			time.Sleep(3 * time.Hour)
			m.is(id, dispatch.TaskWaiting, 1, 1)
			m.ok(m.d.ResumeQueue(m.Context(), machineQueue))
			time.Sleep(2 * time.Minute)
			m.is(id, dispatch.TaskDead, 2, 2)
		}},
		{"17 the worker died", status(200), func(m *machine) {
			id := m.put(dispatch.Task{Timeout: time.Minute})
			r, err := m.redis.Claim(m.Context(), dispatch.ClaimRequest{Queue: machineQueue, Worker: "w-gone", Seq: 1, Budget: 1, Grace: time.Second})
			m.ok(err)
			m.start()
			time.Sleep(2 * time.Minute)
			if h := m.is(id, dispatch.TaskWaiting, 1, 0).Progress.History[0]; h.ErrorKind != dispatch.KindLeaseLost || h.Worker != "w-gone" {
				m.Errorf("attempt %+v", h)
			}
			late, err := m.redis.Settle(m.Context(), dispatch.SettleRequest{Queue: machineQueue, Worker: "w-gone",
				Items: []dispatch.Settlement{{ID: id, Lease: r.Leased[0].Lease, Outcome: dispatch.Succeeded}}})
			m.ok(err)
			if late.Applied[0] {
				m.Error("a stale completion counts")
			}
			time.Sleep(2 * time.Hour)
			m.gone(id, 1)
		}},
		{"18 a name is free again when its window is over", status(200), func(m *machine) {
			id := m.put(dispatch.Task{ID: "a"})
			m.start()
			m.gone(id, 1)
			time.Sleep(3*time.Hour - time.Millisecond)
			m.taken("a", true)
			time.Sleep(2 * time.Millisecond)
			m.taken("a", false)
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(t, row.answer)
				row.run(m)
				synctest.Wait()
				m.ok(m.redis.CheckInvariants(context.Background(), machineQueue))
			})
		})
	}
}
