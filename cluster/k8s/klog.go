package k8s

import (
	"context"
	"errors"
	"log/slog"

	"k8s.io/klog/v2"
)

// sink takes what client-go logs during an election. Its steps are of interest to who debugs; what it calls an error is a
// warning here, because it tries again. Without this, klog would write to the standard error of the user's program.
type sink struct{ log *slog.Logger }

// Init does nothing.
func (s sink) Init(klog.RuntimeInfo) {}

// Enabled says whether messages of a level are of interest.
func (s sink) Enabled(int) bool { return s.log.Enabled(context.Background(), slog.LevelDebug) }

// Info logs a step.
func (s sink) Info(_ int, msg string, pairs ...any) { s.log.Debug("k8s: "+msg, pairs...) }

// Error logs what went wrong. A request that ends because the election ends is none of it.
func (s sink) Error(err error, msg string, pairs ...any) {
	level := slog.LevelWarn
	if errors.Is(err, context.Canceled) {
		level = slog.LevelDebug
	}
	s.log.Log(context.Background(), level, "k8s: "+msg, append(pairs, "error", err)...)
}

// WithValues adds pairs to all that follows.
func (s sink) WithValues(pairs ...any) klog.LogSink { return sink{s.log.With(pairs...)} }

// WithName does nothing: the messages say whose they are.
func (s sink) WithName(string) klog.LogSink { return s }
