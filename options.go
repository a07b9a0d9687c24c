package dispatch

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/dispatchkit/dispatch/cluster"
	"github.com/dispatchkit/dispatch/worker"
)

// ClientOptions are the settings of a Client. The zero value is ready for use.
type ClientOptions struct {
	// Logger gets the client's warnings; nil means slog.Default(). Payloads, headers and URLs are never logged.
	Logger *slog.Logger
	// Registry tells what workers there are, for tasks with Requires; nil means the store.
	Registry cluster.Store
	// DedupWindow is as in Options, for tasks that this client cancels, deletes or purges. 0 means 1 h, negative none.
	DedupWindow time.Duration
	// Durability says when what this client writes counts as stored: when the primary has it, the zero value, or when
	// replicas have it too.
	Durability Durability
	// RetentionFailed is as in Options, for tasks that this client cancels. 0 means 7 days; negative: they are gone at once.
	RetentionFailed time.Duration
	// StrictQueues refuses tasks for queues that do not exist with ErrQueueNotFound. Off, enqueuing creates them.
	StrictQueues bool
	// TraceContext returns the W3C trace context of the span in the ctx of Enqueue or EnqueueMany, which ask once per call.
	// It goes into the Metadata of the tasks as "traceparent" and "tracestate", unless they have one of the two, for handlers
	// to find there, and from there into the headers of requests, unless the task's Header has one of the two. What is not
	// valid is left out: a traceparent of version 00, and with it a tracestate of at most 512 printable ASCII characters.
	// It is called by many goroutines at once. Nil traces nothing. With OpenTelemetry it is
	//
	//	carrier := propagation.MapCarrier{}
	//	propagation.TraceContext{}.Inject(ctx, carrier)
	//	return carrier["traceparent"], carrier["tracestate"]
	//
	// and a handler goes on with propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier(task.Metadata)).
	TraceContext func(ctx context.Context) (traceparent, tracestate string)
}

// Options are the settings of a Dispatcher. The zero value is ready for use: every field says what its zero means.
type Options struct {
	// BreakerThreshold is after how many attempts in a row without a response a receiver (scheme, host and port) is taken
	// for dead by this process. Then one attempt at a time (a few, if they hang) tries it, at its own pace and counted as
	// ever, so that its tasks end by their RetryConfig; the others are released unsent, as KindShed, and come back after 1 s
	// to 1 min. Any response, a 5xx too, ends that. 0 means 10; negative: never; at most 1,000,000.
	BreakerThreshold int
	// Capacity is what the tasks of this process may use together; see Task.Requires. Nil states none: then every task
	// fits. With a capacity, a name that it lacks counts as 0.
	Capacity cluster.Resources
	// CleanupInterval is how often retained tasks and names whose time is over are removed. 0 means 1 min.
	CleanupInterval time.Duration
	// Clock times everything that is local to the process; nil means the real one. Stored instants are the store's.
	Clock clockwork.Clock
	// DedupWindow is how long the name of a named task stays taken after the task has ended. 0 means 1 h, negative none.
	// Like the retentions it is applied by the process that ends the task: set it alike everywhere.
	DedupWindow time.Duration
	// DrainTimeout is how long Stop waits for running attempts before it ends their contexts. 0 means 25 s.
	DrainTimeout time.Duration
	// Durability is as in ClientOptions, for what is done through the Client that this dispatcher is.
	Durability Durability
	// Egress says which addresses tasks with a URL may reach; the zero value is public ones only. Allow names networks of
	// your own, such as a cluster's 10.0.0.0/8; AllowPrivate is for development. It is not used with an HTTPClient.
	Egress worker.Egress
	// GlobalConcurrency is how many attempts run at once in this process. 0 means 64. No queue has all of these places, or
	// attempts that hang would keep all other queues waiting: each has at most three for each that it leaves free, so one busy
	// queue runs 48 of 64, two run 27 each, and of 2 places one is left. With one place, or when Queues names one queue only,
	// nothing is left free.
	GlobalConcurrency int
	// HTTPClient delivers the tasks with a URL; nil means one that is tuned for the purpose and guarded by Egress. Whatever
	// it is set to, redirects are not followed. One of your own is not guarded unless its transport is made by, or wraps,
	// worker.NewTransport; a warning says so.
	HTTPClient *http.Client
	// HeartbeatInterval is how often this process tells the registry that it lives, whatever it runs. 0 means 10 s.
	HeartbeatInterval time.Duration
	// Leader elects the process that leads: see LeaderElector. Nil means that this process always leads, as is right for
	// one process alone: it has no term and publishes no Plan, and what several such leaders do is done twice, harmlessly.
	Leader LeaderElector
	// LeaseGrace is added to a task's Timeout to make its lease: the time to start the attempt and to report its end.
	// 0 means 10 s; at least 100 ms.
	LeaseGrace time.Duration
	// Logger gets warnings and errors; nil means slog.Default(). Payloads, headers and URLs are never logged.
	Logger *slog.Logger
	// Metadata is what the registry says of this process besides the rest; at most 16 KiB.
	Metadata map[string]string
	// Observer is told how every attempt ended; nil means nobody is.
	Observer Observer
	// PerQueueClaimCap is the most tasks that one claim asks for. 0 means 100; at most 150, which
	// keep the store for half a millisecond, and on a busy machine for a whole one.
	PerQueueClaimCap int
	// Queues are the queues that this process serves, at most 1000; empty means all.
	Queues []string
	// ReconcileInterval is how often the notes of waiting work are read for those that no message has told of. 0 means
	// 5 s.
	ReconcileInterval time.Duration
	// Registry keeps the workers; nil means the store. With another registry nobody is told when workers come and go, and
	// the plan follows within 30 s.
	Registry cluster.Store
	// RetentionFailed is how long dead and cancelled tasks stay readable. 0 means 7 days; negative: they are gone at once.
	RetentionFailed time.Duration
	// RetentionSucceeded is how long succeeded tasks stay readable. 0 means that they are gone at once.
	RetentionSucceeded time.Duration
	// Secrets finds the secrets of a name that a task or queue has. Requests are signed with all of them, the new one first
	// and, while secrets are rotated, the old ones behind: Standard Webhooks v1, "whsec_" and base64 of 24 to 64 bytes. It is
	// asked at every attempt, by many goroutines at once. An attempt whose secret is not found, or bad, fails and sends
	// nothing. Only names are stored; secrets are never stored or logged. Nil knows no secret.
	Secrets func(ctx context.Context, name string) ([]string, error)
	// StaleJobThreshold is how long a process may be silent before the leader gives its tasks to others. A process that
	// cannot reach the registry for as long stops claiming and ends what it runs, just before. 0 means 30 s; more than
	// twice the HeartbeatInterval. Set it alike everywhere.
	StaleJobThreshold time.Duration
	// StrictQueues is as in ClientOptions, for the tasks that this process enqueues.
	StrictQueues bool
	// SweepInterval is how often the leader settles leases that have ended, and looks for dead workers. Other processes
	// settle what is overdue three times as long. 0 means 5 s.
	SweepInterval time.Duration
	// TokenSources makes, by the name of the queue, the tokens that go with the tasks of the queue that have a URL: as
	// Authorization: Bearer, in place of an Authorization header of the task. An attempt whose source fails, or makes what
	// is no token, is retried and sends nothing. Tokens, and what a source says of a failure, are never stored or logged.
	// Nil sends none.
	TokenSources map[string]TokenSource
	// TraceContext is as in ClientOptions, for the tasks that this process enqueues. Tasks of cron entries have none.
	TraceContext func(ctx context.Context) (traceparent, tracestate string)
}

const (
	maxServedQueues   = 1000
	maxWorkerMetadata = 16 << 10 // bytes
)

// withDefaults fills the fields that are zero.
func (o Options) withDefaults() Options {
	if o.Clock == nil {
		o.Clock = clockwork.NewRealClock()
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Observer == nil {
		o.Observer = func(Event) {}
	}
	o.CleanupInterval = orDefault(o.CleanupInterval, time.Minute)
	o.DedupWindow = orDefault(o.DedupWindow, defaultDedupWindow)
	o.DrainTimeout = orDefault(o.DrainTimeout, 25*time.Second)
	o.GlobalConcurrency = orDefault(o.GlobalConcurrency, 64)
	o.HeartbeatInterval = orDefault(o.HeartbeatInterval, 10*time.Second)
	o.LeaseGrace = orDefault(o.LeaseGrace, 10*time.Second)
	o.PerQueueClaimCap = orDefault(o.PerQueueClaimCap, 100)
	o.ReconcileInterval = orDefault(o.ReconcileInterval, 5*time.Second)
	o.RetentionFailed = orDefault(o.RetentionFailed, 7*24*time.Hour)
	o.StaleJobThreshold = orDefault(o.StaleJobThreshold, 30*time.Second)
	o.SweepInterval = orDefault(o.SweepInterval, 5*time.Second)
	o.TokenSources = maps.Clone(o.TokenSources) // it is read while attempts run
	return o
}

const defaultDedupWindow = time.Hour

func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

// validate refuses settings that cannot work. It expects the defaults to be filled in.
func (o Options) validate() error {
	if len(o.Queues) > maxServedQueues {
		return fieldErrorf("Options.Queues", "has %d names; at most %d, or none for all", len(o.Queues), maxServedQueues)
	}
	for _, q := range o.Queues {
		if err := validateQueueName("Options.Queues", q); err != nil {
			return err
		}
	}
	if o.Registry != nil && isNil(o.Registry) {
		return fieldErrorf("Options.Registry", "is a nil pointer")
	}
	if o.Leader != nil && isNil(o.Leader) {
		return fieldErrorf("Options.Leader", "is a nil pointer")
	}
	if v, ok := o.Leader.(interface{ Validate() error }); ok {
		if err := v.Validate(); err != nil {
			return fmt.Errorf("Options.Leader: %w", err)
		}
	}
	if err := o.Egress.Validate(); err != nil {
		return fmt.Errorf("Options.Egress: %w", err)
	}
	for _, c := range []struct {
		field    string
		value    time.Duration
		low, top time.Duration
	}{
		{"CleanupInterval", o.CleanupInterval, 100 * time.Millisecond, 24 * time.Hour},
		{"DrainTimeout", o.DrainTimeout, time.Millisecond, 24 * time.Hour},
		{"HeartbeatInterval", o.HeartbeatInterval, 10 * time.Millisecond, 6 * time.Hour},
		{"LeaseGrace", o.LeaseGrace, 100 * time.Millisecond, time.Hour},
		{"ReconcileInterval", o.ReconcileInterval, 10 * time.Millisecond, time.Hour},
		{"StaleJobThreshold", o.StaleJobThreshold, 20 * time.Millisecond, 12 * time.Hour},
		{"SweepInterval", o.SweepInterval, 10 * time.Millisecond, time.Hour},
		{"RetentionSucceeded", o.RetentionSucceeded, 0, maxSchedule},
		{"RetentionFailed", max(o.RetentionFailed, 0), 0, maxSchedule},
		{"DedupWindow", max(o.DedupWindow, 0), 0, maxSchedule},
	} {
		if c.value < c.low || c.value > c.top {
			return fieldErrorf("Options."+c.field, "%v is not between %v and %v", c.value, c.low, c.top)
		}
	}
	if o.StaleJobThreshold <= 2*o.HeartbeatInterval {
		return fieldErrorf("Options.StaleJobThreshold", "%v is not more than twice the HeartbeatInterval of %v",
			o.StaleJobThreshold, o.HeartbeatInterval)
	}
	size := 0
	for k, v := range o.Metadata {
		size += len(k) + len(v)
	}
	if size > maxWorkerMetadata {
		return fieldErrorf("Options.Metadata", "has %d bytes; at most %d", size, maxWorkerMetadata)
	}
	if err := validateResources("Options.Capacity", o.Capacity); err != nil {
		return err
	}
	if err := validateTokenSources(o.TokenSources); err != nil {
		return err
	}
	if o.GlobalConcurrency < 1 || o.GlobalConcurrency > 1_000_000 {
		return fieldErrorf("Options.GlobalConcurrency", "%d is not between 1 and 1000000", o.GlobalConcurrency)
	}
	if o.BreakerThreshold > 1_000_000 {
		return fieldErrorf("Options.BreakerThreshold", "%d is more than 1000000", o.BreakerThreshold)
	}
	if o.PerQueueClaimCap < 1 || o.PerQueueClaimCap > 150 {
		return fieldErrorf("Options.PerQueueClaimCap", "%d is not between 1 and 150", o.PerQueueClaimCap)
	}
	return nil
}

// shared says whether the places of this process are for several queues.
func (o Options) shared() bool { return len(o.Queues) != 1 }

// retention is what the options say of things that have ended.
func (o Options) retention() retention {
	return retention{succeeded: o.RetentionSucceeded, failed: max(o.RetentionFailed, 0), dedup: max(o.DedupWindow, 0)}
}
