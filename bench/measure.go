package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"
)

// entryLimit bounds one measurement of one entry.
const entryLimit = 10 * time.Minute

// result is what one entry has made of a figure.
type result struct {
	entry
	samples []float64
	err     error // why it is left out: errSkipped, or a failure
}

func (r *result) median() float64 {
	sorted := slices.Sorted(slices.Values(r.samples))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}

// measured is a figure with what came of it.
type measured struct {
	figure
	results []*result
}

// measure goes through all entries of all figures in turn, as often as it is told, so that whatever slows the machine
// for a while slows all of them. An entry that fails is left out from then on.
func measure(ctx context.Context, e *env, figures []figure, repeats int, progress io.Writer) []measured {
	all := make([]measured, len(figures))
	for i, f := range figures {
		all[i].figure = f
		for _, entry := range f.entries {
			all[i].results = append(all[i].results, &result{entry: entry})
		}
	}
	for repeat := range repeats {
		e.round = make(map[string]any)
		for _, m := range all {
			for _, r := range m.results {
				if r.err != nil || ctx.Err() != nil {
					continue
				}
				began := time.Now()
				value, err := measureOnce(ctx, e, m.figure, r.entry)
				if err != nil {
					r.err = err
					fmt.Fprintf(progress, "%d/%d %s, %s: %v\n", repeat+1, repeats, m.name, nameOf(r.peer), err)
					continue
				}
				r.samples = append(r.samples, value)
				fmt.Fprintf(progress, "%d/%d %s, %s, %s: %.5g %s (took %.1f s)\n",
					repeat+1, repeats, m.name, nameOf(r.peer), r.how, value, m.unit, time.Since(began).Seconds())
			}
		}
	}
	return all
}

// measureOnce measures on an empty database, and without the garbage of the entry before.
func measureOnce(ctx context.Context, e *env, f figure, entry entry) (float64, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, entryLimit, fmt.Errorf("not done within %v", entryLimit))
	defer cancel()
	if err := e.flush(ctx); err != nil {
		return 0, err
	}
	runtime.GC()
	n := f.n
	if e.quick {
		n = f.quick
	}
	return entry.run(ctx, e, n)
}

// best is the result of a peer whose median is the best, or nil; peer "" is Dispatch.
func (m measured) best(peer string) *result {
	var best *result
	for _, r := range m.results {
		if r.peer != peer || r.err != nil || len(r.samples) == 0 {
			continue
		}
		if best == nil || (r.median() > best.median()) == m.moreIsBetter() {
			best = r
		}
	}
	return best
}

// moreIsBetter says which way a figure is good: all but throughputs are costs.
func (m measured) moreIsBetter() bool { return m.unit == perSecond }

// peerNames are the peers of a figure, in the order of its entries.
func (m measured) peerNames() []string {
	var names []string
	for _, r := range m.results {
		if r.peer != "" && !slices.Contains(names, r.peer) {
			names = append(names, r.peer)
		}
	}
	return names
}

func nameOf(peer string) string {
	if peer == "" {
		return "dispatch"
	}
	return peer
}

// failures are the errors of entries that have failed, not of those that were skipped.
func failures(all []measured) error {
	var errs []error
	for _, m := range all {
		for _, r := range m.results {
			if r.err != nil && !errors.Is(r.err, errSkipped) {
				errs = append(errs, fmt.Errorf("%s, %s, %s: %w", m.name, nameOf(r.peer), r.how, r.err))
			}
		}
	}
	return errors.Join(errs...)
}
