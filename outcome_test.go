package dispatch

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

var errTest = errors.New("went wrong")

// concludeCase is everything that conclude decides by.
func TestConclude(t *testing.T) {
	retry := RetryConfig{MaxAttempts: 3, MaxRetryDuration: -1, MinBackoff: 10 * time.Second, MaxBackoff: time.Hour, MaxDoublings: 16}
	keep := retention{succeeded: 0, failed: time.Hour, dedup: time.Minute}
	const keepSucceeded = 2 * time.Hour
	lease := Lease{Token: 7, Fence: "7 w 1 1"}
	began := start.Add(time.Minute)
	for _, c := range []struct {
		name     string
		result   result
		before   int // attempts so far
		named    bool
		derived  bool
		retained bool          // succeeded tasks are kept
		task     time.Duration // the task's own retention

		want     Outcome
		after    time.Duration
		tomb     time.Duration
		attempts int // 0: the progress is left as it is
	}{
		{name: "success", want: Succeeded},
		{name: "success of the last attempt", before: 2, want: Succeeded},
		{name: "success, named", named: true, want: Succeeded, tomb: time.Minute},
		{name: "success, retained", retained: true, want: Succeeded, after: keepSucceeded, attempts: 1},
		{name: "success, named and retained", named: true, retained: true, before: 1, want: Succeeded, after: keepSucceeded, tomb: time.Minute, attempts: 2},
		{name: "success, derived", named: true, derived: true, want: Succeeded, tomb: time.Hour},
		{name: "final failure, derived", result: result{kind: KindHandler, err: errTest, final: true}, named: true, derived: true, want: Dead, after: time.Hour, tomb: time.Hour, attempts: 1},
		{name: "success with a result, not retained", result: result{output: "r"}, want: Succeeded},
		{name: "success with a result, retained", result: result{output: "r"}, retained: true, before: 1, want: Succeeded, after: keepSucceeded, attempts: 2},
		{name: "success, retained by the task", task: time.Minute, want: Succeeded, after: time.Minute, attempts: 1},
		{name: "success, retained longer by the task", task: 9 * time.Hour, retained: true, want: Succeeded, after: 9 * time.Hour, attempts: 1},
		{name: "success, not retained by the task", task: -1, retained: true, want: Succeeded},
		{name: "final failure, not retained by the task", result: result{kind: KindHandler, err: errTest, final: true, output: "r"}, task: -1, want: Dead, after: time.Hour, attempts: 1},
		{name: "HTTP success", result: result{status: 204}, want: Succeeded},

		{name: "failure", result: result{kind: KindHandler, err: errTest}, want: Retry, after: 10 * time.Second, attempts: 1},
		{name: "second failure", result: result{kind: KindHandler, err: errTest}, before: 1, named: true, want: Retry, after: 20 * time.Second, tomb: time.Minute, attempts: 2},
		{name: "failure, exhausted", result: result{kind: KindHandler, err: errTest}, before: 2, want: Dead, after: time.Hour, attempts: 3},
		{name: "failure, exhausted and named", result: result{kind: KindHandler, err: errTest}, before: 2, named: true, want: Dead, after: time.Hour, tomb: time.Minute, attempts: 3},
		{name: "failure, limit lowered meanwhile", result: result{kind: KindHandler, err: errTest}, before: 8, want: Dead, after: time.Hour, attempts: 9},
		{name: "final failure", result: result{kind: KindHandler, err: errTest, final: true}, want: Dead, after: time.Hour, attempts: 1},
		{name: "failure with a fixed time", result: result{kind: KindHandler, err: errTest, fixed: true, after: time.Second}, want: Retry, after: time.Second, attempts: 1},
		{name: "failure with a fixed time of zero", result: result{kind: KindHandler, err: errTest, fixed: true}, want: Retry, attempts: 1},
		{name: "failure with a fixed time, exhausted", result: result{kind: KindHandler, err: errTest, fixed: true, after: time.Second}, before: 2, want: Dead, after: time.Hour, attempts: 3},

		{name: "released", result: result{released: true}, want: Released},
		{name: "released with its reason", result: result{released: true, err: errTest}, want: Released},
		{name: "snoozed", result: result{released: true, after: time.Minute, err: errSnoozed}, named: true, want: Released, after: time.Minute, tomb: time.Minute},
		{name: "snoozed at the last attempt", result: result{released: true, after: time.Minute, err: errSnoozed}, before: 2, want: Released, after: time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := keep
			if c.retained {
				k.succeeded = keepSucceeded
			}
			task := &Leased{Task: Task{ID: "a", Retention: c.task}, Named: c.named, Derived: c.derived, Lease: lease, Progress: progressOf(c.before)}
			before := progressOf(c.before)
			got := conclude(task, retry, k, c.result, AttemptRecord{Number: c.before + 1, StartedAt: began}, began.Add(time.Second))
			if got.ID != "a" || got.Lease != lease {
				t.Errorf("settles %s under %v, want a under %v", got.ID, got.Lease, lease)
			}
			if got.Outcome != c.want || got.After != c.after || got.Tombstone != c.tomb {
				t.Errorf("got %s after %v with a tombstone of %v, want %s after %v with %v",
					got.Outcome, got.After, got.Tombstone, c.want, c.after, c.tomb)
			}
			checkProgress(t, got.Progress, before, c.attempts, began, c.result)
			if !reflect.DeepEqual(task.Progress, before) {
				t.Errorf("the claimed progress was changed to %+v", task.Progress)
			}
		})
	}
}

func checkProgress(t *testing.T, got *Progress, before Progress, attempts int, began time.Time, r result) {
	t.Helper()
	if attempts == 0 {
		if got != nil {
			t.Errorf("the progress becomes %+v, want it left alone", got)
		}
		return
	}
	if got == nil {
		t.Fatalf("the progress is left alone, want %d attempts", attempts)
	}
	first := began
	if before.Attempts > 0 {
		first = before.FirstAttempt
	}
	if got.Attempts != attempts || !got.FirstAttempt.Equal(first) || !got.LastAttempt.Equal(began) {
		t.Errorf("progress is %+v, want %d attempts from %v to %v", got, attempts, first, began)
	}
	wantResult := r.output
	if r.err != nil {
		wantResult = ""
	}
	if string(got.Result) != wantResult {
		t.Errorf("the result is %q, want %q", got.Result, wantResult)
	}
	last := got.History[len(got.History)-1]
	if last.Number != attempts || last.ErrorKind != r.kind {
		t.Errorf("last attempt is %+v, want number %d of kind %q", last, attempts, r.kind)
	}
}

func progressOf(attempts int) Progress {
	var p Progress
	for n := range attempts {
		p = *p.with(AttemptRecord{Number: n + 1, StartedAt: start.Add(time.Duration(n) * time.Second), ErrorKind: KindHandler})
	}
	return p
}

// Every kind of failure that a worker or the sweep reports is a counted attempt, and keeps what it knows.
func TestConcludeKeepsTheError(t *testing.T) {
	for _, kind := range []ErrorKind{KindTimeout, KindConnect, KindDNS, KindTLS, KindNon2xx, KindConfig, KindHandler, KindPanic, KindLeaseLost} {
		for _, attempts := range []int{0, 1} {
			t.Run(fmt.Sprintf("%s after %d", kind, attempts), func(t *testing.T) {
				r := result{kind: kind, err: errTest, text: "the text", status: 418}
				rc := RetryConfig{MaxAttempts: 2, MinBackoff: time.Second}
				got := conclude(&Leased{Progress: progressOf(attempts)}, rc, retention{}, r, AttemptRecord{Duration: 5}, start)
				if want := []Outcome{Retry, Dead}[attempts]; got.Outcome != want {
					t.Errorf("outcome %s, want %s", got.Outcome, want)
				}
				last := got.Progress.History[attempts]
				if last.ErrorKind != kind || last.Error != "the text" || last.Status != 418 || last.Duration != 5 {
					t.Errorf("the attempt keeps %+v", last)
				}
			})
		}
	}
}

// The time limit of retries counts from the first attempt to the failure, not to the start of the last attempt.
func TestConcludeMeasuresTheRetryDuration(t *testing.T) {
	rc := RetryConfig{MaxRetryDuration: time.Minute, MinBackoff: time.Second}
	for after, want := range map[time.Duration]Outcome{time.Minute - 1: Retry, time.Minute: Dead} {
		got := conclude(&Leased{}, rc, retention{}, result{kind: KindHandler, err: errTest}, AttemptRecord{StartedAt: start}, start.Add(after))
		if got.Outcome != want {
			t.Errorf("failed %v after its start: %s, want %s", after, got.Outcome, want)
		}
	}
}

func TestConcludeWithoutDedupWindow(t *testing.T) {
	for window, want := range map[time.Duration]time.Duration{-1: 0, 0: time.Hour, time.Second: time.Second} {
		o := Options{DedupWindow: window}.withDefaults()
		if got := o.retention().tombstone(true, false, 0); got != want {
			t.Errorf("a DedupWindow of %v leaves a tombstone of %v, want %v", window, got, want)
		}
		if got := o.retention().tombstone(false, false, 0); got != 0 {
			t.Errorf("an unnamed task leaves a tombstone of %v", got)
		}
		if got := o.retention().tombstone(true, true, 0); got != max(want, time.Hour) {
			t.Errorf("a DedupWindow of %v leaves a derived name taken for %v", window, got)
		}
	}
}

func TestRetentionOptions(t *testing.T) {
	got := Options{RetentionFailed: -1, RetentionSucceeded: time.Second}.withDefaults().retention()
	if got.failed != 0 || got.succeeded != time.Second {
		t.Errorf("retention is %+v, want none of failures and 1 s of successes", got)
	}
	got = Options{}.withDefaults().retention()
	if got.failed != 7*24*time.Hour || got.succeeded != 0 {
		t.Errorf("default retention is %+v, want 7 days of failures and none of successes", got)
	}
}

func TestProgressKeepsTheLastTen(t *testing.T) {
	p := progressOf(25)
	if p.Attempts != 25 || len(p.History) != maxHistory {
		t.Fatalf("%d attempts with a history of %d, want 25 with %d", p.Attempts, len(p.History), maxHistory)
	}
	for i, a := range p.History {
		if a.Number != 16+i {
			t.Errorf("history[%d] is attempt %d, want %d", i, a.Number, 16+i)
		}
	}
	if !p.FirstAttempt.Equal(start) || !p.LastAttempt.Equal(start.Add(24*time.Second)) {
		t.Errorf("attempts from %v to %v", p.FirstAttempt, p.LastAttempt)
	}
}

// An attempt that was not made leaves a record and nothing else, and of several in a row the last.
func TestConcludeShed(t *testing.T) {
	r := result{released: true, kind: KindShed, after: 5 * time.Second, err: errTest, text: strings.Repeat("x", maxErrorText+1)}
	for _, attempts := range []int{0, 1, maxHistory, 25} {
		task := &Leased{Task: Task{ID: "a"}, Lease: Lease{Token: 7}, Progress: progressOf(attempts)}
		for token := range int64(3) {
			before := task.Progress
			before.History = slices.Clone(before.History)
			record := AttemptRecord{Number: attempts + 1, StartedAt: start.Add(time.Hour), Token: token}
			got := conclude(task, RetryConfig{MaxAttempts: 1}, retention{}, r, record, start)
			if got.Outcome != Released || got.After != 5*time.Second || got.Tombstone != 0 || got.Progress == nil {
				t.Fatalf("after %d attempts: %+v", attempts, got)
			}
			if !reflect.DeepEqual(task.Progress, before) {
				t.Errorf("the claimed progress was changed to %+v", task.Progress)
			}
			task.Progress = *got.Progress
		}
		p, made := task.Progress, progressOf(attempts)
		last := p.History[len(p.History)-1]
		if last.ErrorKind != KindShed || last.Number != attempts+1 || last.Token != 2 || len(last.Error) != maxErrorText || len(p.History) != min(attempts+1, maxHistory) {
			t.Errorf("after %d attempts the history has %d records and ends with %+v", attempts, len(p.History), last)
		}
		if previous := p.previous(); (previous == nil) != (attempts == 0) || previous != nil && previous.Number != attempts {
			t.Errorf("after %d attempts the previous one is %+v", attempts, previous)
		}
		p.History, made.History = nil, nil
		if !reflect.DeepEqual(p, made) {
			t.Errorf("the progress becomes %+v, want %+v", p, made)
		}
		if next := task.Progress.with(AttemptRecord{Number: attempts + 1, StartedAt: start}); next.Attempts != attempts+1 || next.previous().Number != attempts+1 {
			t.Errorf("the next attempt makes it %+v", next)
		}
	}
}

func TestErrorTextIsClipped(t *testing.T) {
	for _, text := range []string{strings.Repeat("x", maxErrorText), strings.Repeat("x", maxErrorText+1), strings.Repeat("ä", maxErrorText), "x" + strings.Repeat("€", maxErrorText)} {
		s := conclude(&Leased{}, RetryConfig{}, retention{}, result{kind: KindHandler, err: errTest, text: text}, AttemptRecord{}, start)
		got := s.Progress.History[0].Error
		if len(got) > maxErrorText || len(got) < maxErrorText-3 || !utf8.ValidString(got) || !strings.HasPrefix(text, got) {
			t.Errorf("an error of %d bytes is kept as %d bytes, valid: %v", len(text), len(got), utf8.ValidString(got))
		}
	}
}

func TestHandlerResult(t *testing.T) {
	wrapped := func(err error) error { return fmt.Errorf("outer: %w", err) }
	for _, c := range []struct {
		name       string
		err, cause error
		want       result
	}{
		{"success", nil, nil, result{}},
		{"success at the deadline", nil, context.DeadlineExceeded, result{}},
		{"success while draining", nil, ErrDraining, result{}},
		{"error", errTest, nil, result{kind: KindHandler, text: "went wrong"}},
		{"error after the deadline", errTest, context.DeadlineExceeded, result{kind: KindTimeout, text: "went wrong"}},
		{"error while draining", errTest, ErrDraining, result{released: true}},
		{"final error while draining", SkipRetry(errTest), ErrDraining, result{kind: KindHandler, text: "went wrong", final: true}},
		{"RetryAfter while draining", RetryAfter(time.Minute, errTest), ErrDraining, result{released: true}},
		{"error after the lease was lost", errTest, ErrLeaseLost, result{released: true}},
		{"SkipRetry", SkipRetry(errTest), nil, result{kind: KindHandler, text: "went wrong", final: true}},
		{"SkipRetry, wrapped", wrapped(SkipRetry(errTest)), nil, result{kind: KindHandler, text: "outer: went wrong", final: true}},
		{"RetryAfter", RetryAfter(time.Minute, errTest), nil, result{kind: KindHandler, text: "went wrong", fixed: true, after: time.Minute}},
		{"RetryAfter 0", RetryAfter(0, errTest), nil, result{kind: KindHandler, text: "went wrong", fixed: true}},
		{"RetryAfter, wrapped, after the deadline", wrapped(RetryAfter(time.Minute, errTest)), context.DeadlineExceeded, result{kind: KindTimeout, text: "outer: went wrong", fixed: true, after: time.Minute}},
		{"Snooze", Snooze(time.Minute), nil, result{released: true, snoozed: true, after: time.Minute}},
		{"Snooze, wrapped, while draining", wrapped(Snooze(time.Minute)), ErrDraining, result{released: true, snoozed: true, after: time.Minute}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := handlerResult(c.err, c.cause)
			if !errors.Is(got.err, c.err) {
				t.Errorf("keeps the error %v, want %v", got.err, c.err)
			}
			got.err = nil
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestDirectives(t *testing.T) {
	if SkipRetry(nil) != nil || RetryAfter(time.Second, nil) != nil {
		t.Error("SkipRetry and RetryAfter make an error of nil")
	}
	for name, err := range map[string]error{"SkipRetry": SkipRetry(errTest), "RetryAfter": RetryAfter(1, errTest)} {
		if !errors.Is(err, errTest) || err.Error() != errTest.Error() {
			t.Errorf("%s does not wrap its error: %v", name, err)
		}
	}
	if err := Snooze(time.Second); err == nil || err.Error() == "" {
		t.Errorf("Snooze gives %v", err)
	}
	if got := handlerResult(RetryAfter(-time.Second, errTest), nil); got.after != 0 || !got.fixed {
		t.Errorf("a negative RetryAfter is %+v, want 0", got)
	}
	if got := handlerResult(Snooze(-time.Second), nil); got.after != 0 || !got.released {
		t.Errorf("a negative Snooze is %+v, want 0", got)
	}
}

// What batches of outcomes are cut by counts results.
func TestSizeOfASettlement(t *testing.T) {
	size := func(bytes int) int {
		return (&settling{settlement: Settlement{Progress: &Progress{Result: make([]byte, bytes)}}}).size()
	}
	if got := size(maxResult) - size(0); got != maxResult {
		t.Errorf("a result of %d bytes counts as %d", maxResult, got)
	}
}
