package dispatch_test

import (
	"context"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/dispatchtest"
)

const (
	someParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	someState  = "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7"
)

type spanKey struct{}

// inSpan is a context whose span has the trace context.
func inSpan(ctx context.Context, parent, state string) context.Context {
	return context.WithValue(ctx, spanKey{}, [2]string{parent, state})
}

// hook is a TraceContext that finds what inSpan has put into the context.
func hook(ctx context.Context) (string, string) {
	span, _ := ctx.Value(spanKey{}).([2]string)
	return span[0], span[1]
}

// The trace context of the caller reaches handlers and receivers, whatever calls its task shares the trip to the store
// with.
func TestTraceContext(t *testing.T) {
	e := newEnv(t, dispatch.Options{TraceContext: hook})
	var got record[map[string]string]
	e.handle("k", func(_ context.Context, task *dispatch.Task) error {
		got.add(task.Metadata)
		return nil
	})
	given := map[string]string{"mine": "kept"}
	ctx := inSpan(t.Context(), someParent, someState)
	for _, task := range []dispatch.Task{{Kind: "k", Metadata: given}, {Kind: "k"}} {
		if _, err := e.d.Enqueue(ctx, task); err != nil {
			t.Fatal(err)
		}
		e.run()
	}
	if all := got.all(); !maps.Equal(all[0], map[string]string{"mine": "kept", "traceparent": someParent, "tracestate": someState}) ||
		!maps.Equal(all[1], map[string]string{"traceparent": someParent, "tracestate": someState}) {
		t.Errorf("handlers got %q", all)
	}
	if len(given) != 1 {
		t.Errorf("the caller's map is now %q", given)
	}

	receiver := dispatchtest.NewReceiver(t, 500, 200)
	id, err := e.d.Enqueue(ctx, dispatch.Task{URL: receiver.URL, Retry: &noWait})
	e.ok(err)
	e.run()
	dispatchtest.RequireDelivered(t, receiver, id, 2)
	for _, d := range receiver.Deliveries() {
		sent(t, d.Header, someParent, someState)
	}
}

// sent demands the headers of a trace context; empty is none.
func sent(t *testing.T, h http.Header, parent, state string) {
	t.Helper()
	for name, want := range map[string]string{"traceparent": parent, "tracestate": state} {
		if got := h.Values(name); strings.Join(got, " and ") != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// EnqueueMany asks once, and not for each task.
func TestTraceContextOfMany(t *testing.T) {
	var calls atomic.Int64
	c, err := dispatch.NewClient(dispatchtest.NewStore(t), dispatch.ClientOptions{TraceContext: func(ctx context.Context) (string, string) {
		calls.Add(1)
		return hook(ctx)
	}})
	if err != nil {
		t.Fatal(err)
	}
	own := map[string]string{"traceparent": "theirs"}
	tasks := []dispatch.Task{{Kind: "k", ID: "a"}, {Kind: "k", ID: "b", Queue: "other"}, {Kind: "k", ID: "c", Metadata: own}, {}}
	results, err := c.EnqueueMany(inSpan(t.Context(), someParent, ""), tasks)
	if err != nil || results[3].Err == nil || calls.Load() != 1 {
		t.Errorf("%+v, %v after %d calls of the hook", results, err, calls.Load())
	}
	for i, want := range []string{someParent, someParent, "theirs"} {
		queue := tasks[i].Queue
		if queue == "" {
			queue = dispatch.DefaultQueue
		}
		info, err := c.Task(t.Context(), queue, results[i].ID)
		if err != nil || !maps.Equal(info.Metadata, map[string]string{"traceparent": want}) {
			t.Errorf("task %d: %+v, %v", i, info, err)
		}
	}
}

// What a task says of its trace itself stands.
func TestTraceContextOfTheTask(t *testing.T) {
	const theirs = "00-11111111111111111111111111111111-2222222222222222-00"
	for name, c := range map[string]struct {
		task          dispatch.Task
		parent, state string // as they are sent
	}{
		"metadata":           {dispatch.Task{Metadata: map[string]string{"traceparent": theirs}}, theirs, ""},
		"both in metadata":   {dispatch.Task{Metadata: map[string]string{"traceparent": theirs, "tracestate": "a=b"}}, theirs, "a=b"},
		"state alone":        {dispatch.Task{Metadata: map[string]string{"tracestate": "a=b"}}, "", ""},
		"header":             {dispatch.Task{Header: http.Header{"Traceparent": {theirs}}}, theirs, ""},
		"header, lower case": {dispatch.Task{Header: http.Header{"traceparent": {theirs}}}, theirs, ""},
		"state in header":    {dispatch.Task{Header: http.Header{"TraceState": {"a=b"}}}, "", "a=b"},
		"no trace":           {dispatch.Task{Metadata: map[string]string{"traceparent": "00-x\r\nX-Injected: a", "tracestate": "a"}}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, dispatch.Options{TraceContext: hook})
			receiver := dispatchtest.NewReceiver(t)
			c.task.URL = receiver.URL
			id, err := e.d.Enqueue(inSpan(t.Context(), someParent, someState), c.task)
			e.ok(err)
			e.run()
			dispatchtest.RequireDelivered(t, receiver, id, 1)
			sent(t, receiver.Deliveries()[0].Header, c.parent, c.state)
		})
	}
}

// What is not valid by the standard is left out.
func TestTraceContextIsChecked(t *testing.T) {
	const trace, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	long := strings.Repeat("s", 512)
	for _, c := range []struct{ name, parent, state, wantParent, wantState string }{
		{"none", "", "", "", ""},
		{"both", someParent, someState, someParent, someState},
		{"not sampled", "00-" + trace + "-" + span + "-00", "", "00-" + trace + "-" + span + "-00", ""},
		{"state without parent", "", someState, "", ""},
		{"longest state", someParent, long, someParent, long},
		{"longer state", someParent, long + "s", someParent, ""},
		{"newline in the state", someParent, "a=b\r\nX: y", someParent, ""},
		{"state that is not ASCII", someParent, "a=ä", someParent, ""},
		{"another version", "01-" + trace + "-" + span + "-01", someState, "", ""},
		{"version ff", "ff-" + trace + "-" + span + "-01", someState, "", ""},
		{"no trace ID", "00-" + strings.Repeat("0", 32) + "-" + span + "-01", someState, "", ""},
		{"no span ID", "00-" + trace + "-" + strings.Repeat("0", 16) + "-01", someState, "", ""},
		{"upper case", strings.ToUpper(someParent), someState, "", ""},
		{"not hexadecimal", "00-" + trace[1:] + "g-" + span + "-01", someState, "", ""},
		{"flags not hexadecimal", someParent[:54] + "x", someState, "", ""},
		{"other separators", strings.ReplaceAll(someParent, "-", "_"), someState, "", ""},
		{"too short", someParent[:54], someState, "", ""},
		{"too long", someParent + "-00", someState, "", ""},
		{"newline", someParent + "\n", someState, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newEnv(t, dispatch.Options{TraceContext: hook})
			id, err := e.d.Enqueue(inSpan(t.Context(), c.parent, c.state), dispatch.Task{Kind: "k"})
			e.ok(err)
			info := e.task(id)
			if info.Metadata["traceparent"] != c.wantParent || info.Metadata["tracestate"] != c.wantState ||
				c.wantParent == "" && info.Metadata != nil {
				t.Errorf("the metadata is %q", info.Metadata)
			}
		})
	}
}

// A trace is never what a task fails of: not by a panic, and not because the task is as large as tasks can be.
func TestTraceContextHarmsNoTask(t *testing.T) {
	var log logged
	e := newEnv(t, dispatch.Options{Logger: log.logger(), TraceContext: func(ctx context.Context) (string, string) {
		if ctx.Value(spanKey{}) == nil {
			panic("boom")
		}
		return hook(ctx)
	}})
	id := e.enqueue(dispatch.Task{Kind: "k"})
	results, err := e.d.EnqueueMany(t.Context(), []dispatch.Task{{Kind: "k"}})
	if err != nil || results[0].Err != nil || e.task(id).Metadata != nil || log.count("TraceContext panicked", "boom") != 2 {
		t.Errorf("%+v, %v; logged:\n%s", results, err, log.String())
	}
	large := dispatch.Task{ID: "large", Kind: "k"}
	large.Payload = make([]byte, 1<<20-len("large")-len("k")-len(dispatch.DefaultQueue))
	_, err = e.d.Enqueue(inSpan(t.Context(), someParent, someState), large)
	e.ok(err)
	if got := e.task("large").Metadata; got != nil {
		t.Errorf("the metadata is %q", got)
	}
}

// Calls that share a trip to the store keep each its own trace, and a repeated name is a duplicate whatever its trace.
func TestTraceContextOfEachCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t)
		c := b.client(dispatch.ClientOptions{TraceContext: hook})
		parent := func(i int) string { return strings.Replace(someParent, "4bf92f35", "4bf92f3"+string(rune('0'+i)), 1) }
		ids := make([]dispatch.TaskID, 10)
		for i := range ids {
			go func() { ids[i], _ = c.Enqueue(inSpan(t.Context(), parent(i), ""), dispatch.Task{Kind: "k"}) }()
		}
		synctest.Wait()
		for i, id := range ids {
			if info, err := c.Task(t.Context(), dispatch.DefaultQueue, id); err != nil || info.Metadata["traceparent"] != parent(i) {
				t.Errorf("task %d: %+v, %v", i, info, err)
			}
		}
		if n := b.store.count("Enqueue"); n >= len(ids) {
			t.Errorf("%d calls made %d trips", len(ids), n)
		}
		for i, want := range []error{nil, dispatch.ErrDuplicateTask} {
			if _, err := c.Enqueue(inSpan(t.Context(), parent(i), ""), dispatch.Task{Kind: "k", ID: "name"}); err != want {
				t.Errorf("call %d: %v", i, err)
			}
		}
	})
}
