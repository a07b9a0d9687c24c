package cron

import (
	"iter"
	"time"
)

// Schedule is a spec that was read. It does not change, so goroutines may share it.
type Schedule struct {
	spec     string
	zone     *time.Location
	every    int64 // seconds; 0 when the calendar counts
	calendar calendar
	fixed    bool // neither minute nor hour starts with "*"
}

// The years 1 to 9999, and how far a search goes: the 400 years in which the calendar repeats, and a century for the
// tables with which zones begin.
const (
	minUnix = -62135596800
	maxUnix = 253402300799
	horizon = 500 * 366 * day
)

// String returns the spec as it was given to Parse.
func (s *Schedule) String() string { return s.spec }

// Next returns the first tick after an instant, in UTC and at a whole second. There is one until the
// year 9999 runs out. The work is bounded by the months up to the tick: at most 480, between two 29th of February that are
// a Sunday.
func (s *Schedule) Next(after time.Time) (time.Time, bool) {
	from := second(after) + 1
	for t := range s.ticks(from, min(from+horizon, maxUnix+1)) {
		return instant(t), true
	}
	return time.Time{}, false
}

// All returns the ticks after one instant and not after another, in order.
func (s *Schedule) All(after, upTo time.Time) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		for t := range s.ticks(second(after)+1, second(upTo)+1) {
			if !yield(instant(t)) {
				return
			}
		}
	}
}

// Last returns the last n ticks after one instant and not after another, in order, and how many there are in all. It
// does not walk through the others: the work is for n ticks, the months between the instants, and some forty times the
// months between the first of the n and upTo. A year of "* * * * *" is a matter of microseconds, two millennia are one
// of milliseconds.
func (s *Schedule) Last(after, upTo time.Time, n int) (ticks []time.Time, total int64) {
	from, to := second(after)+1, second(upTo)+1
	total = s.count(from, to)
	want := min(int64(n), total)
	if want <= 0 {
		return nil, total
	}
	// First double the span before the end until it holds enough, so that what is counted again and again is short.
	span := int64(hour)
	for span < to-from && s.count(to-span, to) < want {
		span *= 2
	}
	// Then find the shortest span that does: more than few, at most span.
	few, span := int64(0), min(span, to-from)
	for span-few > 1 {
		if half := few + (span-few)/2; s.count(to-half, to) >= want {
			span = half
		} else {
			few = half
		}
	}
	ticks = make([]time.Time, 0, want)
	for t := range s.ticks(to-span, to) {
		ticks = append(ticks, instant(t))
	}
	return ticks, total
}

// second rounds down, into the years that have ticks.
func second(t time.Time) int64 { return max(minUnix-1, min(t.Unix(), maxUnix)) }

func instant(unix int64) time.Time { return time.Unix(unix, 0).UTC() }
