package dispatch

import (
	"context"
	"maps"
	"net/http"
	"runtime/debug"
	"strings"
)

// The names of a trace context by W3C, as keys of a task's Metadata and as headers of its request.
const (
	traceparent = "traceparent"
	tracestate  = "tracestate"
)

const maxTracestate = 512 // bytes

// traceContext is the W3C trace context of the span that enqueues a task. The zero value is none.
type traceContext struct{ parent, state string }

// newTraceContext is a trace context as far as it is valid: a state is one only with a parent.
func newTraceContext(parent, state string) traceContext {
	switch {
	case !isTraceparent(parent):
		return traceContext{}
	case !isTracestate(state):
		return traceContext{parent: parent}
	}
	return traceContext{parent: parent, state: state}
}

// traceOf asks the hook, if there is one, for the trace context of a call. A panic of the hook is logged and goes no
// further: the task is stored all the same.
func (c *Client) traceOf(ctx context.Context) (span traceContext) {
	if c.trace == nil {
		return traceContext{}
	}
	defer func() {
		if p := recover(); p != nil {
			c.log.Error("dispatch: TraceContext panicked", "panic", p, "stack", string(debug.Stack()))
		}
	}()
	return newTraceContext(c.trace(ctx))
}

// onto adds the trace context to a task, whose Metadata stays the caller's own, unless the task has one already. Where the
// task has no room for it, the task goes without.
func (span traceContext) onto(t Task) Task {
	if span.parent == "" {
		return t
	}
	for _, name := range []string{traceparent, tracestate} {
		if _, set := t.Metadata[name]; set {
			return t
		}
	}
	metadata := make(map[string]string, len(t.Metadata)+2)
	maps.Copy(metadata, t.Metadata)
	metadata[traceparent] = span.parent
	if span.state != "" {
		metadata[tracestate] = span.state
	}
	traced := t
	if traced.Metadata = metadata; traced.size() > maxTaskBytes {
		return t
	}
	return traced
}

// addTo adds the trace context to the header of a request, in the lower case of the standard.
func (span traceContext) addTo(h http.Header) {
	if span.parent == "" {
		return
	}
	h[traceparent] = []string{span.parent}
	if span.state != "" {
		h[tracestate] = []string{span.state}
	}
}

// isTraceparent says whether s is a traceparent of version 00: "00-", 32 and 16 hexadecimal digits for the trace and the
// span, neither of them all zero, and 2 for the flags, with "-" between.
func isTraceparent(s string) bool {
	return len(s) == 55 && s[:3] == "00-" && s[35] == '-' && s[52] == '-' &&
		isHex(s[3:35]) && isHex(s[36:52]) && isHex(s[53:]) &&
		strings.Trim(s[3:35], "0") != "" && strings.Trim(s[36:52], "0") != ""
}

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

// isTracestate does not look into the list: whoever reads it does.
func isTracestate(s string) bool {
	return len(s) <= maxTracestate && !strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r > 0x7e })
}
