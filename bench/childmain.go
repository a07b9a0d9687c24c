package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/redisstore"
)

// childLimit ends a child that nobody has ended.
const childLimit = 15 * time.Minute

// childMain is the main function of a child. It drains nothing unless it is told to stop: when it returns, the process ends,
// and with the parent the server has gone, too.
func childMain(config string, in io.Reader, out io.Writer) error {
	var c childConfig
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), childLimit)
	defer cancel()
	store, err := redisstore.Open(ctx, c.RedisURL, redisstore.Options{})
	if err != nil {
		return err
	}
	w := childWork{late: newHistogram(), sleep: c.Sleep}
	options := dispatch.Options{
		Queues: c.Queues, GlobalConcurrency: c.Places, Observer: w.observe,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	if c.Elect {
		options.Leader = store.Elector(redisstore.ElectorOptions{})
	}
	d, err := dispatch.New(store, options)
	if err != nil {
		return err
	}
	d.Handle(noop.Kind, &w)
	fmt.Fprintln(out, lineReady)
	answers := json.NewEncoder(out)
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var err error
		switch lines.Text() {
		case lineStart:
			err = d.Start(ctx)
		case lineReport:
			err = answers.Encode(w.report())
		case lineStop:
			report := w.report() // what the drain costs is not what was measured
			if err = d.Stop(); err == nil {
				report.Handled = w.handled.Load()
				err = answers.Encode(report)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// childWork is what a child's handler does and what its observer sees.
type childWork struct {
	sleep            time.Duration
	handled, settled atomic.Int64
	last             atomic.Int64 // Unix ns
	early            atomic.Int64
	late             *histogram
}

// Handle sleeps if it is to, and looks at when the task should have started, if its payload says so.
func (w *childWork) Handle(_ context.Context, t *dispatch.Task) error {
	if at, err := stampOf(t.Payload); err == nil {
		late := time.Since(at)
		if late < 0 {
			w.early.Add(1)
		}
		w.late.record(late)
	}
	w.handled.Add(1)
	if w.sleep > 0 {
		time.Sleep(w.sleep)
	}
	return nil
}

func (w *childWork) observe(e dispatch.Event) {
	if e.Outcome == dispatch.Succeeded {
		w.settled.Add(1)
		w.last.Store(time.Now().UnixNano())
	}
}

func (w *childWork) report() childReport {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err) // it has no reason to fail
	}
	return childReport{
		Handled: w.handled.Load(), Settled: w.settled.Load(), Last: time.Unix(0, w.last.Load()),
		CPU:     time.Duration(usage.Utime.Nano() + usage.Stime.Nano()),
		LateP50: w.late.ms(50), LateP99: w.late.ms(99), LateMax: w.late.ms(100), Early: w.early.Load(),
	}
}
