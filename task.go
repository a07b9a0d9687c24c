package dispatch

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/dispatchkit/dispatch/cluster"
)

// TaskID names a task inside its queue. A generated ID has 20 characters, sorts by the time it was made and is unique;
// an ID chosen by the caller has 1 to 500 characters of [A-Za-z0-9_-] and makes the task a named one: while it is live,
// while it is retained, and for the dedup window after it has ended, the same name is refused with ErrDuplicateTask.
type TaskID string

// Task says what to do: call a URL, or run the Go handler of a Kind. Exactly one of the two is set.
//
// A Task is a plain value; after Enqueue only EditTask changes it. Payload, Header and Metadata are not copied by this
// package: do not modify them while a call that was given the Task runs.
type Task struct {
	// ID names the task; empty lets Enqueue generate one.
	ID TaskID
	// Queue is where the task waits; empty means "default".
	Queue string

	// Kind selects the Go handler that runs the task; at most 200 bytes. A process without a handler of the kind puts the
	// task off for a few seconds, without counting an attempt, and warns once: so every process that serves a queue
	// should have the handlers of all its kinds, or see Options.Queues.
	Kind string

	// URL is called with Method, Header and Payload as its body; http or https, at most 2083 characters.
	URL string
	// Method is the HTTP method; empty means POST. Only POST, PUT and PATCH may carry a Payload.
	Method string
	// Header is sent with the request, keys as written here; at most 80 KiB. Hop-by-hop headers, Host,
	// Content-Length and X-Dispatch-* are refused. User-Agent, X-Google-*, X-AppEngine-* and X-CloudTasks-* are left out:
	// the first is always Dispatch's, and by the others receivers know Google's platforms.
	Header http.Header

	// Payload is the body of the request or the input of the handler: opaque bytes. The whole task may have 1 MiB.
	Payload []byte

	// Delay postpones the first attempt, counted by the store's clock from the moment it stores the task. Zero means
	// at once; at most ten years.
	Delay time.Duration
	// ScheduleTime is the instant of the first attempt; zero or past means at once; at most ten years ahead. A task
	// has Delay or ScheduleTime, never both.
	ScheduleTime time.Time

	// Timeout bounds one attempt: the context of the handler ends, or the HTTP exchange is aborted. 0 means 10
	// minutes; otherwise 1 s to 24 h, cut to whole milliseconds. It is also how long a task stays with a worker that
	// dies: Timeout + Options.LeaseGrace after the claim another one takes it. Work that may take longer calls Extend.
	Timeout time.Duration
	// Retention is how long the task stays readable once it has succeeded, with its result; see ResultWriter and
	// Client.Wait. 0 means Options.RetentionSucceeded of the process that runs it, negative that it is gone at once; at most
	// ten years, cut to whole milliseconds. Dead tasks stay for Options.RetentionFailed.
	Retention time.Duration
	// Retry overrides the queue's RetryConfig, field by field; nil changes nothing.
	Retry *RetryConfig
	// Secret names the secret that signs the request of a task with a URL, see Options.Secrets; empty means the queue's.
	Secret string
	// Requires is what an attempt needs of the process that runs it, such as cpu or memory: it runs where that fits into
	// Options.Capacity beside what runs there already. It is completed from Queue.Requires when the task is stored.
	// A task that needs most of a process may wait for long while smaller ones of its queue keep that busy: give such tasks a
	// queue and processes of their own.
	// Enqueue refuses with ErrUnschedulable what fits into no live worker, if all that serve the queue state a capacity.
	Requires cluster.Resources
	// Unique makes the ID from what the task does, so that it is a named one; nil does not. ID is empty then. It is not kept
	// with the task.
	Unique *Unique
	// Metadata is kept with the task for its handler and for whoever reads it; it counts towards the size of the task. Of
	// it "traceparent" and "tracestate" are sent as headers, see ClientOptions.TraceContext.
	Metadata map[string]string
}

// NewTask makes a task for the Go handler of kind, with v encoded as JSON for its payload. HandleFunc decodes it.
func NewTask(kind string, v any) (Task, error) {
	payload, err := json.Marshal(v)
	if err != nil {
		return Task{}, fmt.Errorf("dispatch: payload of kind %q: %w", kind, err)
	}
	return Task{Kind: kind, Payload: payload}, nil
}

// TaskState is where a task stands.
type TaskState string

// The states of a task. One that has ended and is not retained is in none of them: it is gone.
const (
	// TaskWaiting is a task that waits for its time, for its first attempt or the next one.
	TaskWaiting TaskState = "waiting"
	// TaskRunning is a task under a lease: a worker has it, or had it and died.
	TaskRunning TaskState = "running"
	// TaskSucceeded is a task that succeeded and is retained.
	TaskSucceeded TaskState = "succeeded"
	// TaskDead is a task that failed for good and is retained.
	TaskDead TaskState = "dead"
	// TaskCancelled is a task that was cancelled and is retained.
	TaskCancelled TaskState = "cancelled"
)

// TaskInfo is a task as the store holds it.
type TaskInfo struct {
	Task
	// State is where the task stands.
	State TaskState
	// CreatedAt is when the store took the task, or when it was last replayed, by the store's clock, to the millisecond.
	CreatedAt time.Time
	// Due is when the next attempt is due (waiting) and zero otherwise.
	Due time.Time
	// LeaseEnd is when the running attempt's lease ends, and zero when no attempt is running.
	LeaseEnd time.Time
	// LeasedBy is the worker that holds the lease.
	LeasedBy cluster.WorkerID
	// Token is the fencing token of the lease, and 0 without one.
	Token int64
	// ExpiresAt is when a retained task (succeeded, dead, cancelled) is removed.
	ExpiresAt time.Time
	// Progress tells of the attempts made so far.
	Progress Progress
	// Err says that a part of the task cannot be read, because another version of the program wrote it, or it is damaged.
	// That part is zero; ID, Queue and State are always there. Nil is a task that is whole.
	Err error
}

// Progress is what a task's attempts have left behind. The zero value is a task that was never attempted.
type Progress struct {
	// Attempts counts the attempts that ended; a released one does not count.
	Attempts int
	// Responses counts those that got an HTTP response, and Executions those of them whose status was below 500.
	Responses, Executions int
	// FirstAttempt and LastAttempt are when the first and the last of them began, by the store's clock.
	FirstAttempt, LastAttempt time.Time
	// History holds the last ten of them, oldest first. An attempt that was not made (KindShed) is among them, although it
	// does not count: of several in a row the last.
	History []AttemptRecord
	// Result is what the attempt that succeeded has left: what its handler wrote to ResultWriter, or the first KiB of the
	// response as text. Nil when that was nothing, or the task has not succeeded.
	Result []byte
}

// AttemptRecord is one attempt that ended.
type AttemptRecord struct {
	// Number is 1 for the first attempt. With KindShed it is that of the attempt which was not made, and which the next
	// one has again.
	Number int
	// StartedAt is when it was dispatched, by the store's clock, to the millisecond.
	StartedAt time.Time
	// Duration is how long it took, to the millisecond; 0 when its worker was lost.
	Duration time.Duration
	// Worker ran it, under the fencing token Token.
	Worker cluster.WorkerID
	Token  int64
	// Status is the HTTP status of the response; 0 for Go handlers and when there was no response.
	Status int
	// ErrorKind says why it failed; empty when it succeeded.
	ErrorKind ErrorKind
	// Error is the error's text, the stack of a panic, or the first bytes of the response body: at most 4 KiB.
	Error string
}

// RespondedAt is when the response had come, by the store's clock and to the millisecond; false when there was
// none.
func (a AttemptRecord) RespondedAt() (time.Time, bool) {
	if a.Status <= 0 {
		return time.Time{}, false
	}
	return a.StartedAt.Add(a.Duration), true
}

// ErrorKind is why an attempt failed, as a small set of words fit for a metric's label.
type ErrorKind string

// The kinds of failure.
const (
	// KindTimeout is an attempt that was not over at its deadline.
	KindTimeout ErrorKind = "timeout"
	// KindConnect is a connection that could not be made or broke before a response.
	KindConnect ErrorKind = "connect"
	// KindDNS is a host name that did not resolve.
	KindDNS ErrorKind = "dns"
	// KindTLS is a TLS handshake or certificate that failed.
	KindTLS ErrorKind = "tls"
	// KindNon2xx is a response whose status is not 200 to 299.
	KindNon2xx ErrorKind = "non_2xx"
	// KindConfig is a request that could not be built.
	KindConfig ErrorKind = "config"
	// KindHandler is an error that a Go handler returned.
	KindHandler ErrorKind = "handler"
	// KindPanic is a panic of a Go handler.
	KindPanic ErrorKind = "panic"
	// KindLeaseLost is a lease that ended before its worker reported: the worker died, hung or was cut off.
	KindLeaseLost ErrorKind = "lease_lost"
	// KindCancelled is an attempt whose task was cancelled.
	KindCancelled ErrorKind = "cancelled"
	// KindShed is no failure but an attempt that was not made: the host does not answer, and another attempt tries it
	// already. The task is released; see Options.BreakerThreshold.
	KindShed ErrorKind = "shed"
)
