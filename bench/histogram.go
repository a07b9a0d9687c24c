package main

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// histogram is an HDR histogram of durations from 1 µs to 2 min, exact to 3 digits, for many goroutines.
type histogram struct {
	mu  sync.Mutex
	hdr *hdrhistogram.Histogram
}

func newHistogram() *histogram {
	return &histogram{hdr: hdrhistogram.New(1, (2 * time.Minute).Microseconds(), 3)}
}

// record counts one duration. One beyond the range counts as the range's end: it must not vanish from the tail.
func (h *histogram) record(d time.Duration) {
	µs := min(max(d.Microseconds(), 1), h.hdr.HighestTrackableValue())
	h.mu.Lock()
	defer h.mu.Unlock()
	_ = h.hdr.RecordValue(µs) // within the range by the line above
}

// add counts all durations of another one too.
func (h *histogram) add(other *histogram) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hdr.Merge(other.hdr)
}

// ms is a percentile in milliseconds.
func (h *histogram) ms(percentile float64) float64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return float64(h.hdr.ValueAtQuantile(percentile)) / 1000
}
