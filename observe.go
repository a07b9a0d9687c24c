package dispatch

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"
)

// Event is how one attempt ended. Every attempt makes one, of HTTP and Go tasks alike, and of leases that were lost.
type Event struct {
	// Queue, ID and Kind are the task's; Kind is empty for a task with a URL.
	Queue string
	ID    TaskID
	Kind  string
	// Outcome is what became of the task, as the store has it.
	Outcome Outcome
	// Attempt is the attempt; its StartedAt is zero when it was released before it started. Its ErrorKind is KindShed when it
	// was released because its receiver does not answer.
	Attempt AttemptRecord
	// Err is why it failed, or nil. With Discarded it is ErrLeaseLost too, also when the store could not be asked until
	// the lease was over.
	Err error
	// Late is how long after its due time the attempt was claimed; 0 for leases that were lost.
	Late time.Duration
}

// Observer is told of every event, after the store has it, by whichever goroutine settled it: it must be safe for
// concurrent use, and quick: the outcomes of its queue wait for it. It is the one place where metrics hang on. A panic of it,
// and a runtime.Goexit, are logged and go no further. A Stop waits only some seconds for one that does not return.
type Observer func(Event)

// observeBatch tells the observer how the attempts of a batch ended, one after the other, and returns when it knows; an empty
// outcome is not told. It does so on a goroutine of its own, so that an observer that calls runtime.Goexit, as a test's
// FailNow does, ends no loop of the dispatcher.
func (d *Dispatcher) observeBatch(batch []*settling, outcomes []Outcome) {
	for len(batch) > 0 {
		told, ended := 0, make(chan struct{})
		go func() {
			defer close(ended)
			for i, s := range batch {
				told++
				if outcomes[i] != "" {
					d.observe(s, outcomes[i])
				}
			}
		}()
		if !d.awaitObserver(ended, batch[0].swept) {
			return
		}
		batch, outcomes = batch[told:], outcomes[told:] // none are left but after a Goexit
	}
}

// awaitObserver waits until the observer has been told, and says whether it has. A sweep is part of a loop that a stop waits
// for, and goes on some time after the stop has begun; the others are waited for by awaitSent.
func (d *Dispatcher) awaitObserver(told <-chan struct{}, swept bool) bool {
	if !swept {
		<-told
		return true
	}
	select {
	case <-told:
		return true
	case <-d.life.loops.Done():
	}
	timer := d.opts.Clock.NewTimer(flushPatience)
	defer timer.Stop()
	select {
	case <-told:
		return true
	case <-timer.Chan():
		return false
	}
}

// observe tells the observer. A panic of the observer is logged and goes no further.
func (d *Dispatcher) observe(s *settling, outcome Outcome) {
	returned := false
	defer func() {
		if p := recover(); p != nil {
			d.log.Error("dispatch: observer panicked", "panic", p, "stack", string(debug.Stack()))
		} else if !returned {
			d.log.Error("dispatch: observer ended its goroutine")
		}
	}()
	r := s.run
	e := Event{
		Queue: r.leased.Task.Queue, ID: r.leased.Task.ID, Kind: r.leased.Task.Kind, Outcome: outcome, Err: s.result.err,
	}
	if !r.leased.Due.IsZero() {
		e.Late = max(r.leased.At.Sub(r.leased.Due), 0)
	}
	switch outcome {
	case Cancelled:
		e.Err = alsoIs(ErrCancelled, e.Err)
	case Discarded:
		e.Err = alsoIs(ErrLeaseLost, e.Err)
	}
	switch {
	case s.settlement.Progress != nil && len(s.settlement.Progress.History) > 0:
		h := s.settlement.Progress.History
		e.Attempt = h[len(h)-1]
	case !r.startedAt.IsZero():
		e.Attempt = r.record(s.endedAt)
		e.Attempt.Status = s.result.status
	default:
		e.Attempt = AttemptRecord{Number: r.number(), Worker: r.leased.Worker, Token: r.leased.Lease.Token}
	}
	if outcome == Cancelled {
		e.Attempt.ErrorKind = KindCancelled
	}
	d.opts.Observer(e)
	returned = true
}

// alsoIs is an error that is why, and what there was besides, on one line.
func alsoIs(why, err error) error {
	if err == nil || errors.Is(err, why) {
		return why
	}
	return fmt.Errorf("%w: %w", why, err)
}

// logger says once that a kind of call fails, and once that it works again: an outage is two lines, not thousands.
type logger struct {
	*slog.Logger

	mu  sync.Mutex
	bad map[string]int // failures of each kind of call since it last worked
}

func newLogger(l *slog.Logger) *logger { return &logger{Logger: l, bad: make(map[string]int)} }

func (l *logger) failing(call string, err error, args ...any) {
	l.mu.Lock()
	l.bad[call]++
	first := l.bad[call] == 1
	l.mu.Unlock()
	if first {
		l.Warn("dispatch: a call fails; retrying", append([]any{"call", call, "error", err}, args...)...)
	}
}

func (l *logger) recovered(call string) {
	l.mu.Lock()
	failures := l.bad[call]
	delete(l.bad, call)
	l.mu.Unlock()
	if failures > 0 {
		l.Info("dispatch: the call succeeds again", "call", call, "failures", failures)
	}
}
