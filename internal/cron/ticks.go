package cron

import "iter"

// ticks yields what is due from one second on and before another.
func (s *Schedule) ticks(from, to int64) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		if s.every > 0 {
			for t := from + floorMod(-from, s.every); t < to; t += s.every {
				if !yield(t) {
					return
				}
			}
			return
		}
		for st := range stretches(s.zone, from, to) {
			jump, lo, hi := s.due(st)
			if jump && !yield(st.from) {
				return
			}
			for local, ok := s.calendar.first(lo, hi); ok; local, ok = s.calendar.first(local+1, hi) {
				if !yield(local - st.offset) {
					return
				}
			}
		}
	}
}

// count is how many ticks there are. Its work is bounded by the months and the changes of offset between the two.
func (s *Schedule) count(from, to int64) int64 {
	if from >= to {
		return 0
	}
	if s.every > 0 {
		return floorDiv(to-1, s.every) - floorDiv(from-1, s.every)
	}
	n := int64(0)
	for st := range stretches(s.zone, from, to) {
		jump, lo, hi := s.due(st)
		if jump {
			n++
		}
		n += s.calendar.number(lo, hi)
	}
	return n
}

// due says what a stretch has to do: whether the jump at its start is a tick, and which local times are looked at. This
// is all there is to the rules about changing clocks.
func (s *Schedule) due(st stretch) (jump bool, lo, hi int64) {
	lo, hi = st.from+st.offset, st.to+st.offset
	if !s.fixed {
		return false, lo, hi
	}
	if st.shown < lo {
		// What the jump left out is due at its end, together with what is due then anyway.
		if _, jump = s.calendar.first(st.shown, lo+1); jump {
			lo++
		}
	}
	return jump, max(lo, st.shown), hi
}
