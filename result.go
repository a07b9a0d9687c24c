package dispatch

import (
	"context"
	"io"
	"sync"
)

// maxResult is how many bytes a task's result may have.
const maxResult = 64 << 10

// ResultWriter returns where the handler that ctx belongs to writes the result of its task: at most 64 KiB, all writes one
// behind the other. Whoever reads the task, see Client.Task and Client.Wait, finds it in Progress.Result, if this attempt
// succeeds and the task is retained: see Task.Retention. What a failed attempt has written is dropped; the next one begins
// anew.
//
// The writer is safe for concurrent use. A Write that would exceed the limit keeps nothing and returns a *FieldError, and
// so does one after the handler has returned, or when ctx is no handler's.
func ResultWriter(ctx context.Context) io.Writer {
	run, ok := ctx.Value(attemptKey{}).(*running)
	if !ok {
		return noOutput{}
	}
	return &run.output
}

// noOutput is the ResultWriter of a context that is no handler's.
type noOutput struct{}

// Write keeps nothing.
func (noOutput) Write([]byte) (int, error) {
	return 0, fieldErrorf("ResultWriter.ctx", "is not the context of a handler")
}

// output gathers what one attempt writes, until it is closed. The zero value is ready for use.
type output struct {
	mu      sync.Mutex
	written []byte
	closed  bool
}

// Write keeps a copy of all of p, or nothing.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return 0, fieldErrorf("ResultWriter.ctx", "is that of an attempt that has ended")
	}
	if len(p) > maxResult-len(o.written) {
		return 0, fieldErrorf("ResultWriter", "has %d bytes and is given %d more; a result has at most %d",
			len(o.written), len(p), maxResult)
	}
	o.written = append(o.written, p...)
	return len(p), nil
}

// close returns what was written, and lets nothing come to it any more.
func (o *output) close() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	return string(o.written)
}
