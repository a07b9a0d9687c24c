package dispatchtest_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var silent = slog.New(slog.DiscardHandler)

// fakeT stands in for the testing.TB of a helper that is to fail. The helper runs on a goroutine of its own, which FailNow
// ends.
type fakeT struct {
	testing.TB
	failed   bool
	text     strings.Builder
	cleanups []func()
}

// failing runs f and returns what it has said, and whether it has failed.
func failing(t *testing.T, f func(t testing.TB)) (said string, failed bool) {
	t.Helper()
	fake := &fakeT{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			for i := len(fake.cleanups) - 1; i >= 0; i-- {
				fake.cleanups[i]()
			}
		}()
		f(fake)
	}()
	<-done
	return fake.text.String(), fake.failed
}

func (f *fakeT) Helper()                  {}
func (f *fakeT) Context() context.Context { return f.TB.Context() }
func (f *fakeT) Cleanup(c func())         { f.cleanups = append(f.cleanups, c) }
func (f *fakeT) Output() io.Writer        { return io.Discard }
func (f *fakeT) Errorf(format string, args ...any) {
	f.failed = true
	fmt.Fprintf(&f.text, format+"\n", args...)
}

func (f *fakeT) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	runtime.Goexit()
}
