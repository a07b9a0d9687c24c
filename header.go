package dispatch

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const userAgent = "dispatch/0.1"

// The headers that every delivery carries. X-Dispatch-* cannot be set by a task.
const (
	// HeaderTaskID is the task's ID: the same on every attempt, so receivers can use it to drop repetitions.
	HeaderTaskID = "X-Dispatch-Task-Id"
	// HeaderQueue is the task's queue.
	HeaderQueue = "X-Dispatch-Queue"
	// HeaderAttempt is the number of the attempt, 1 for the first.
	HeaderAttempt = "X-Dispatch-Attempt"
	// HeaderRetryCount is one less than HeaderAttempt.
	HeaderRetryCount = "X-Dispatch-Retry-Count"
	// HeaderExecutionCount is how many earlier attempts got a response whose status was below 500.
	HeaderExecutionCount = "X-Dispatch-Execution-Count"
	// HeaderPreviousStatus is the HTTP status that the last attempt ended with; absent on the first attempt and when there was
	// no response. HeaderPreviousError is the ErrorKind that it ended with; absent on the first attempt. What was not sent
	// (KindShed) is no attempt.
	HeaderPreviousStatus = "X-Dispatch-Previous-Status"
	HeaderPreviousError  = "X-Dispatch-Previous-Error"
	// HeaderScheduledAt is when the attempt was due (RFC 3339, UTC, ms).
	HeaderScheduledAt = "X-Dispatch-Scheduled-At"
	// HeaderDeadline is when the attempt is given up (RFC 3339, UTC, ms).
	HeaderDeadline = "X-Dispatch-Deadline"
	// HeaderFencingToken rises with every attempt of the queue's tasks: a receiver that remembers the highest one it has
	// seen for a task can refuse an older attempt that arrives late.
	HeaderFencingToken = "X-Dispatch-Fencing-Token"
)

// HeaderNoRetry is read from responses: "true" on one that is a failure makes the task dead at once.
const HeaderNoRetry = "X-Dispatch-No-Retry"

const headerTime = "2006-01-02T15:04:05.000Z07:00"

// header is what the request carries: the task's headers as they were written, and Dispatch's own.
func (r *running) header() http.Header {
	t := &r.leased.Task
	h := make(http.Header, len(t.Header)+16)
	values := make([]string, 0, 16)
	set := func(name, value string) { // many values in one allocation
		values = append(values, value)
		h[name] = values[len(values)-1 : len(values) : len(values)]
	}
	typed, traced := false, false
	for name, values := range t.Header {
		switch canonical := http.CanonicalHeaderKey(dashed(name)); {
		case isStripped(canonical):
			continue
		case canonical == "Content-Type":
			typed = true
		case canonical == "Traceparent", canonical == "Tracestate":
			traced = true
		}
		h[name] = values
	}
	if !traced {
		newTraceContext(t.Metadata[traceparent], t.Metadata[tracestate]).addTo(h)
	}
	if !typed && len(t.Payload) > 0 {
		contentType := "application/octet-stream"
		if json.Valid(t.Payload) {
			contentType = "application/json"
		}
		set("Content-Type", contentType)
	}
	for _, name := range deadLetterHeaders {
		if value := t.Metadata[name]; value != "" && !strings.ContainsFunc(value, isControl) {
			set(name, value)
		}
	}
	deadline, _ := r.ctx.Deadline()
	set("User-Agent", userAgent)
	set(HeaderTaskID, string(t.ID))
	set(HeaderQueue, t.Queue)
	set(HeaderAttempt, strconv.Itoa(r.number()))
	set(HeaderRetryCount, strconv.Itoa(r.number()-1))
	set(HeaderExecutionCount, strconv.Itoa(r.leased.Progress.Executions))
	if last := r.leased.Progress.previous(); last != nil {
		set(HeaderPreviousError, string(last.ErrorKind))
		if last.Status > 0 {
			set(HeaderPreviousStatus, strconv.Itoa(last.Status))
		}
	}
	set(HeaderScheduledAt, formatHeaderTime(r.leased.Due))
	set(HeaderDeadline, formatHeaderTime(r.storeTime(deadline)))
	set(HeaderFencingToken, strconv.FormatInt(r.leased.Lease.Token, 10))
	return h
}

// isStripped says whether a header of a task is left out: the User-Agent, which is always Dispatch's, and what receivers on
// Google's platforms take for the word of the platform itself.
func isStripped(canonical string) bool {
	return canonical == "User-Agent" || strings.HasPrefix(canonical, "X-Google-") ||
		strings.HasPrefix(canonical, "X-Appengine-") || strings.HasPrefix(canonical, "X-Cloudtasks-")
}

// formatHeaderTime is the format headerTime, in two steps: the standard library has a fast way for all but the milliseconds.
func formatHeaderTime(t time.Time) string {
	t = t.UTC()
	if y := t.Year(); y < 1000 || y > 9999 {
		return t.Format(headerTime)
	}
	var buf [len(headerTime)]byte
	b := t.AppendFormat(buf[:0], time.RFC3339)
	ms := t.Nanosecond() / 1e6
	b = append(b[:len(b)-1], '.', byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10), 'Z')
	return string(b)
}
