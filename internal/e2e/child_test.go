package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/redisstore"
)

// childEnv holds a worker process's settings as JSON.
const childEnv = "DISPATCH_E2E_CHILD"

// settings of a worker process. Zero durations mean the product's defaults.
type settings struct {
	URL         string
	Behaviour   string // of the handler of kind "work"; see behaviours
	Work        time.Duration
	Concurrency int
	LeaseGrace  time.Duration
	Sweep       time.Duration
	Drain       time.Duration
	Retention   time.Duration // of succeeded tasks
	TimeURL     string        // when set, handlers ask this server for its time at their start
	Ends        bool          // whether the process says when handlers end

	// What the process is in a fleet.
	Queues           []string
	Elector          string        // see electors; empty is none
	TTL, Retry       time.Duration // of the elector
	Heartbeat, Stale time.Duration
}

// The lines that a worker process prints. Each is one write, so it is in the pipe before anything else happens.
//
//	ready WORKER
//	start QUEUE ID ATTEMPT TOKEN LOCAL_MICROS REDIS_MICROS DUE_MILLIS
//	end QUEUE ID TOKEN LOCAL_MICROS
//	outcome QUEUE ID OUTCOME KIND ATTEMPT
//	said QUEUE ID TEXT...
//	stats GOROUTINES
//	leads LOCAL_MICROS
//	follows LOCAL_MICROS
//	draining LOCAL_MICROS
//	stopped MILLIS ERROR...
//	leak TEXT...
func say(format string, args ...any) {
	line := strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", " | ") + "\n"
	os.Stdout.WriteString(line)
}

type child struct {
	settings
	gate  chan struct{} // closed by the command "go"
	clock *redis.Client
}

func runChild(config string) int {
	c := &child{gate: make(chan struct{})}
	if err := json.Unmarshal([]byte(config), &c.settings); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go c.obey()
	if c.TimeURL != "" {
		o, err := redis.ParseURL(c.TimeURL)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 2
		}
		c.clock = redis.NewClient(o)
	}
	before := goleak.IgnoreCurrent()
	if err := c.work(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	if err := goleak.Find(before); err != nil {
		say("leak %v", err)
	}
	return 0
}

// obey reads commands; the end of the input is the end of the parent.
func (c *child) obey() {
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		switch in.Text() {
		case "go":
			close(c.gate)
		case "stats":
			say("stats %d", runtime.NumGoroutine())
		}
	}
	os.Exit(3)
}

func (c *child) work(ctx context.Context) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	store, err := redisstore.Open(ctx, c.URL, redisstore.Options{Logger: log})
	if err != nil {
		return err
	}
	defer store.Close()
	d, err := dispatch.New(store, dispatch.Options{
		GlobalConcurrency: c.Concurrency, LeaseGrace: c.LeaseGrace, SweepInterval: c.Sweep, DrainTimeout: c.Drain,
		RetentionSucceeded: c.Retention, Logger: log, Observer: observe, Queues: c.Queues,
		HeartbeatInterval: c.Heartbeat, StaleJobThreshold: c.Stale, Leader: c.elector(store),
	})
	if err != nil {
		return err
	}
	behaviour := behaviours[c.Behaviour]
	d.Handle("work", dispatch.HandlerFunc(func(ctx context.Context, t *dispatch.Task) error {
		c.sayStart(ctx, t)
		err := behaviour(ctx, c, t)
		if c.Ends {
			a, _ := dispatch.AttemptFrom(ctx)
			say("end %s %s %d %d", t.Queue, t.ID, a.Token, time.Now().UnixMicro())
		}
		return err
	}))
	say("ready %s", d.Worker())
	context.AfterFunc(ctx, func() { say("draining %d", time.Now().UnixMicro()) })
	begun := make(chan time.Time, 1)
	context.AfterFunc(ctx, func() { begun <- time.Now() })
	if c.Elector != "" {
		defer sayRoles(d)()
	}
	err = d.Run(ctx)
	say("stopped %d %v", time.Since(<-begun).Milliseconds(), err)
	return nil
}

func (c *child) sayStart(ctx context.Context, t *dispatch.Task) {
	local, server := time.Now().UnixMicro(), int64(0)
	if c.clock != nil {
		if now, err := c.clock.Time(ctx).Result(); err == nil {
			server = now.UnixMicro()
		}
	}
	a, _ := dispatch.AttemptFrom(ctx)
	say("start %s %s %d %d %d %d %d", t.Queue, t.ID, a.Number, a.Token, local, server, a.ScheduledAt.UnixMilli())
}

func observe(e dispatch.Event) {
	kind := e.Attempt.ErrorKind
	if kind == "" {
		kind = "-"
	}
	say("outcome %s %s %s %s %d", e.Queue, e.ID, e.Outcome, kind, e.Attempt.Number)
}

// behaviours are what the handlers do once they have said that they started.
var behaviours = map[string]func(ctx context.Context, c *child, t *dispatch.Task) error{
	// sleep works for a while, or as long as the payload says, and stops when it is told to.
	"sleep": func(ctx context.Context, c *child, t *dispatch.Task) error {
		work := c.Work
		if d, err := time.ParseDuration(string(t.Payload)); err == nil {
			work = d
		}
		timer := time.NewTimer(work)
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	},
	// flaky fails the first attempt at tasks that ask for it.
	"flaky": func(ctx context.Context, _ *child, t *dispatch.Task) error {
		if a, _ := dispatch.AttemptFrom(ctx); a.Number == 1 && len(t.Payload) > 0 {
			return fmt.Errorf("first attempt")
		}
		return nil
	},
	// late waits for the gate, whatever becomes of its lease, and then reports as the payload says.
	"late": func(ctx context.Context, c *child, t *dispatch.Task) error {
		<-c.gate
		switch string(t.Payload) {
		case "extend":
			say("said %s %s extend: %v", t.Queue, t.ID, dispatch.Extend(context.WithoutCancel(ctx), 10*time.Second))
		case "release":
			return dispatch.Snooze(0)
		case "fail":
			return fmt.Errorf("late failure")
		}
		return nil
	},
	// hold finishes tasks marked so and keeps the others, under a long lease, until the gate opens.
	"hold": func(ctx context.Context, c *child, t *dispatch.Task) error {
		if t.Metadata["then"] == "finish" {
			return nil
		}
		if err := dispatch.Extend(ctx, time.Minute); err != nil {
			return err
		}
		say("said %s %s held", t.Queue, t.ID)
		select {
		case <-c.gate:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	},
}
