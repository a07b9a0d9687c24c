package audit_test

import (
	"context"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/bench/chaos/audit"
	"github.com/dispatchkit/dispatch/internal/redistest"
)

// TestRealRun puts a run of the product through the ledger and the checker, and then takes one task away.
func TestRealRun(t *testing.T) {
	t.Parallel()
	b := newBench(t, redistest.Single)
	dir := t.TempDir()
	log, err := audit.Open(dir, "w")
	b.must(err)
	const lease, tasks = 10 * time.Second, 50
	succeeded := make(chan struct{}, tasks)
	d, err := dispatch.New(b.store, dispatch.Options{
		Logger: quiet, LeaseGrace: time.Second,
		Observer: func(e dispatch.Event) {
			log.Append(audit.Event{
				Kind: audit.KindOutcome, Queue: e.Queue, ID: string(e.ID), Outcome: string(e.Outcome),
				Attempt: e.Attempt.Number, Token: e.Attempt.Token,
			})
			if e.Outcome == dispatch.Succeeded {
				succeeded <- struct{}{}
			}
		},
	})
	b.must(err)
	d.Handle("k", dispatch.HandlerFunc(func(ctx context.Context, task *dispatch.Task) error {
		a, _ := dispatch.AttemptFrom(ctx)
		e := audit.Event{
			Kind: audit.KindStart, Queue: task.Queue, ID: string(task.ID), Attempt: a.Number, Token: a.Token,
			Lease: (lease + time.Second).Microseconds(),
		}
		log.Append(e)
		e.Kind, e.Result = audit.KindEnd, audit.EndOK
		defer func() { log.Append(e) }()
		io.WriteString(dispatch.ResultWriter(ctx), string(task.ID))
		if a.Number == 1 {
			e.Result = audit.EndFail
			return io.ErrUnexpectedEOF
		}
		return nil
	}))
	b.must(d.Start(t.Context()))
	var last dispatch.TaskID
	for i := range tasks {
		task := dispatch.Task{
			Queue: "q", Kind: "k", Timeout: lease, Delay: time.Duration(i) * time.Millisecond, Retention: time.Hour,
			Retry: &dispatch.RetryConfig{MinBackoff: time.Millisecond},
		}
		e := audit.Event{Queue: "q", Result: audit.AckStored, NotBefore: time.Now().Add(task.Delay).UnixMicro()}
		last, err = d.Enqueue(t.Context(), task)
		b.must(err)
		e.Kind, e.ID = audit.KindAck, string(last)
		log.Append(e)
	}
	for range tasks {
		<-succeeded
	}
	b.must(d.Stop())
	b.must(log.Close())

	rules := audit.Rules{Drained: true, Store: b.snapshot(), Leftover: []string{"{q}:done", "{q}:tasks", "{q}:state"}}
	h, err := audit.Read(dir)
	b.must(err)
	r := audit.Check(h, rules)
	for _, f := range r.Findings {
		t.Error(f)
	}
	if r.Enqueued != tasks || r.Delivered != tasks || r.Duplicates != 0 {
		t.Errorf("%+v", r)
	}
	key := audit.TaskKey{Queue: "q", ID: string(last)}
	if got := rules.Store.Finals[key]; string(got.Result) != string(last) || got.Attempts != 2 {
		t.Errorf("%+v", got)
	}

	h.Events = slices.DeleteFunc(h.Events, func(e audit.Event) bool { return e.ID == key.ID && e.Kind != audit.KindAck })
	delete(rules.Store.Finals, key)
	if r := audit.Check(h, rules); r.Lost != 1 || len(r.Findings) != 1 || r.Findings[0].ID != key.ID {
		t.Errorf("%+v", r)
	}
}
