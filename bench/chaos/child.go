package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.uber.org/goleak"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/bench/chaos/audit"
	"github.com/dispatchkit/dispatch/redisstore"
)

// childFlag, as the first argument, makes the program a worker or a producer: a process that another one starts and breaks.
const childFlag = "-child"

// childConfig is what a child is: a worker or a producer.
type childConfig struct {
	Who    string
	URL    string
	Ledger string // directory
	Worker *WorkerConfig
	Load   *Load
}

// child is a worker or producer process. What it does goes to the ledger; to its standard output it says, a line each,
//
//	ready WORKER     it works, under that ID
//	stopped ERROR    its dispatcher has stopped
//	leak TEXT        goroutines that it has left
type child struct {
	childConfig
	log   *audit.Log
	slog  *slog.Logger
	clock *skewedClock

	gate    chan struct{} // closed by the command "open"
	open    sync.Once
	snoozed sync.Map // tasks that were put off once
}

// childMain is the main function of a child.
func childMain(config string, in io.Reader) error {
	c := &child{
		gate: make(chan struct{}),
		slog: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	}
	if err := json.Unmarshal([]byte(config), &c.childConfig); err != nil {
		return err
	}
	var err error
	if c.log, err = audit.Open(c.Ledger, c.Who); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if c.Worker != nil {
		c.clock = newSkewedClock(c.Worker.Skew)
	}
	go c.obey(in)
	before := goleak.IgnoreCurrent()
	if err := c.work(ctx); err != nil {
		return errors.Join(err, c.log.Close())
	}
	if err := goleak.Find(before); err != nil {
		say("leak %v", err)
	}
	return c.log.Close()
}

// say prints a line in one write, so it is in the pipe before anything else happens.
func say(format string, args ...any) {
	io.WriteString(os.Stdout, strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", " | ")+"\n")
}

// obey reads commands. The end of the input is the end of the parent.
func (c *child) obey(in io.Reader) {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case "open":
			c.open.Do(func() { close(c.gate) })
		case "step":
			d, err := time.ParseDuration(rest)
			if err != nil || c.clock == nil {
				c.slog.Error("no such step", "step", rest, "error", err)
				continue
			}
			c.clock.step(d)
		}
	}
	os.Exit(3)
}

func (c *child) work(ctx context.Context) error {
	store, err := redisstore.Open(ctx, c.URL, redisstore.Options{Logger: c.slog})
	if err != nil {
		return err
	}
	defer store.Close()
	if c.Load != nil {
		client, err := dispatch.NewClient(store, dispatch.ClientOptions{Logger: c.slog})
		if err != nil {
			return err
		}
		say("ready")
		return produce(ctx, &Client{Client: client, log: c.log}, c.Who, *c.Load)
	}
	o := c.Worker.options()
	o.Clock, o.Logger, o.Observer = c.clock, c.slog, c.observe
	if !c.Worker.Alone {
		o.Leader = store.Elector(redisstore.ElectorOptions{
			TTL: c.Worker.LeaderTTL, Retry: c.Worker.LeaderRetry, Clock: c.clock, Logger: c.slog,
		})
	}
	d, err := dispatch.New(store, o)
	if err != nil {
		return err
	}
	d.Handle(taskKind, dispatch.HandlerFunc(c.handle))
	say("ready %s", d.Worker())
	stop := c.enqueue(ctx, d)
	err = d.Run(ctx)
	stop()
	say("stopped %v", err)
	if errors.Is(err, dispatch.ErrDrainTimeout) {
		return nil // a handler that ignores its context; the ledger says what became of its task
	}
	return err
}

// enqueue starts to enqueue what a worker is to enqueue by itself, and returns what ends that.
func (c *child) enqueue(ctx context.Context, d *dispatch.Dispatcher) (stop func()) {
	if c.Worker.Enqueues == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := produce(ctx, &Client{Client: d.Client, log: c.log}, c.Who, *c.Worker.Enqueues); err != nil {
			c.slog.Error("the worker has stopped to enqueue", "error", err)
		}
	}()
	return func() { cancel(); <-done }
}

// handle does what a task asks for, and writes its start and its end.
func (c *child) handle(ctx context.Context, t *dispatch.Task) error {
	a, _ := dispatch.AttemptFrom(ctx)
	e := audit.Event{Queue: t.Queue, ID: string(t.ID), Attempt: a.Number, Token: a.Token}
	start := e
	start.Kind, start.Lease = audit.KindStart, c.Worker.Lease(t.Timeout).Microseconds()
	c.log.Append(start)
	var w Work
	if len(t.Payload) > 0 {
		if err := json.Unmarshal(t.Payload, &w); err != nil {
			return dispatch.SkipRetry(err)
		}
	}
	putOff := func() bool { _, before := c.snoozed.LoadOrStore(e.Task(), true); return !before }
	err := w.do(ctx, c.gate, putOff, func(text string) {
		note := e
		note.Kind, note.Text = audit.KindNote, text
		c.log.Append(note)
	})
	end := e
	end.Kind, end.Result = audit.KindEnd, ended(err, context.Cause(ctx))
	c.log.Append(end)
	return err
}

// observe writes what became of an attempt. The product has no word of its own for an attempt whose lease was lost: it is a retry,
// or dead, of that kind.
func (c *child) observe(e dispatch.Event) {
	outcome := string(e.Outcome)
	if e.Outcome == dispatch.Retry && e.Attempt.ErrorKind == dispatch.KindLeaseLost {
		outcome = audit.OutcomeLeaseLost
	}
	kind := audit.KindOutcome
	if e.Attempt.Token == 0 {
		kind = audit.KindNote // a lease that cannot be read; for the checker such an outcome is an administrator's
	}
	c.log.Append(audit.Event{
		Kind: kind, Queue: e.Queue, ID: string(e.ID), Attempt: e.Attempt.Number, Token: e.Attempt.Token, Outcome: outcome,
		Text: string(e.Attempt.ErrorKind),
	})
}
