package cron

import (
	"iter"
	"time"
)

// stretch is a span of real time in which a zone keeps its offset: from <= t < to, in Unix seconds.
type stretch struct {
	from, to int64
	offset   int64
	// shown is the local time up to which the zone's clocks have come before: all that is less was shown or jumped over.
	// At the end of summer time it is more than from+offset, at its beginning less, else equal.
	shown int64
}

// lookBack is longer than any jump. By walking that far up to a stretch one knows all that clocks may be showing again.
const lookBack = 3 * day

// stretches cuts a span of time at the zone's changes of offset, and perhaps elsewhere.
func stretches(zone *time.Location, from, to int64) iter.Seq[stretch] {
	return func(yield func(stretch) bool) {
		at := from - lookBack
		offset, end := offsetAt(zone, at)
		shown := at + offset
		for at < to {
			end = min(end, to)
			if end > from {
				s := stretch{from: at, to: end, offset: offset, shown: shown}
				if s.from < from {
					// The jump at its start, if there was one, is before the span.
					s.from = from
					s.shown = max(shown, from+offset)
				}
				if !yield(s) {
					return
				}
			}
			shown = max(shown, end+offset)
			at = end
			offset, end = offsetAt(zone, at)
		}
	}
}

// offsetAt returns the zone's offset at an instant, and an instant up to which it does not change.
func offsetAt(zone *time.Location, at int64) (offset, end int64) {
	t := time.Unix(at, 0).In(zone)
	_, seconds := t.Zone()
	_, bound := t.ZoneBounds()
	if bound.IsZero() {
		return int64(seconds), maxUnix + lookBack
	}
	if end = bound.Unix(); end <= at {
		// Go takes each year of a rule for one of 365 days: on the last day of a leap year the bound has gone by. Clocks
		// change at quarters of an hour, so this finds the next change all the same.
		const quarter = 15 * minute
		end = at + quarter - floorMod(at, quarter)
	}
	return int64(seconds), end
}
