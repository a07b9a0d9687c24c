package cron

import (
	"math/bits"
	"time"
)

const (
	minute = 60
	hour   = 60 * minute
	day    = 24 * hour
)

// calendar is what five fields select, as bits. It knows no zones: a local time is the number of seconds since
// 1970-01-01T00:00 on a clock that nobody ever sets.
type calendar struct {
	minutes  uint64
	hours    uint32
	days     uint32 // from bit 1
	months   uint16 // from bit 1
	weekdays uint8  // bit 0 is Sunday
	either   bool   // one of days and weekdays suffices
}

// first returns the first match from lo on and before hi. It goes by months, so its work is bounded by their number.
func (c *calendar) first(lo, hi int64) (int64, bool) {
	lo += floorMod(-lo, minute)
	start, rest := floorDiv(lo, day), floorMod(lo, day)
	for m := monthOf(start); m.start*day < hi; m = m.next() {
		set := c.daysOf(m)
		if m.start < start {
			set &= ^uint32(0) << (start - m.start + 1)
		}
		for ; set != 0; set &= set - 1 {
			date := m.start + int64(bits.TrailingZeros32(set)) - 1
			from := int64(0)
			if date == start {
				from = rest
			}
			// Only the very first day can be too late already, so this inner loop ends with its second round.
			if t, ok := c.timeOfDay(from); ok {
				local := date*day + t
				return local, local < hi
			}
		}
	}
	return 0, false
}

// timeOfDay returns the first matching second of a day from the given one on, which starts a minute.
func (c *calendar) timeOfDay(from int64) (int64, bool) {
	h, m := from/hour, from%hour/minute
	if c.hours>>h&1 != 0 {
		if left := c.minutes >> m; left != 0 {
			return from + int64(bits.TrailingZeros64(left))*minute, true
		}
	}
	left := c.hours >> (h + 1)
	if left == 0 {
		return 0, false
	}
	h += 1 + int64(bits.TrailingZeros32(left))
	return h*hour + int64(bits.TrailingZeros64(c.minutes))*minute, true
}

// number counts the matches from lo on and before hi. Its work is bounded by the number of months.
func (c *calendar) number(lo, hi int64) int64 {
	if lo >= hi {
		return 0
	}
	first, last := floorDiv(lo, day), floorDiv(hi, day)
	perDay := int64(bits.OnesCount32(c.hours) * bits.OnesCount64(c.minutes))
	n := c.numberOfDays(first, last) * perDay
	if c.numberOfDays(first, first+1) > 0 {
		n -= c.numberBefore(floorMod(lo, day))
	}
	if c.numberOfDays(last, last+1) > 0 {
		n += c.numberBefore(floorMod(hi, day))
	}
	return n
}

// numberBefore counts the matches of a day before one of its seconds.
func (c *calendar) numberBefore(second int64) int64 {
	h, m := second/hour, (second%hour+minute-1)/minute
	n := bits.OnesCount32(c.hours&(1<<h-1)) * bits.OnesCount64(c.minutes)
	if c.hours>>h&1 != 0 {
		n += bits.OnesCount64(c.minutes & (1<<m - 1))
	}
	return int64(n)
}

// numberOfDays counts the days that match from the first on and before the last.
func (c *calendar) numberOfDays(first, last int64) int64 {
	n := 0
	for m := monthOf(first); m.start < last; m = m.next() {
		set := c.daysOf(m)
		if m.start < first {
			set &= ^uint32(0) << (first - m.start + 1)
		}
		if left := last - m.start; left < m.length {
			set &= 1<<(left+1) - 1
		}
		n += bits.OnesCount32(set)
	}
	return int64(n)
}

// daysOf returns the days of a month that match, from bit 1.
func (c *calendar) daysOf(m month) uint32 {
	if c.months>>m.number&1 == 0 {
		return 0
	}
	const thursday = 4 // 1970-01-01
	weekday := floorMod(m.start+thursday, 7)
	week := uint64(c.weekdays>>weekday|c.weekdays<<(7-weekday)) & (1<<7 - 1)
	byWeekday := uint32((week | week<<7 | week<<14 | week<<21 | week<<28) << 1)
	all := uint32(1<<(m.length+1) - 2)
	if c.either {
		return all & (c.days | byWeekday)
	}
	return all & c.days & byWeekday
}

// month is a month of a year, in days since 1970-01-01.
type month struct {
	number        time.Month
	start, length int64
}

func monthOf(d int64) month {
	year, number, date := time.Unix(d*day, 0).UTC().Date()
	length := int64(31)
	switch number {
	case time.April, time.June, time.September, time.November:
		length = 30
	case time.February:
		length = 28
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			length = 29
		}
	}
	return month{number: number, start: d - int64(date) + 1, length: length}
}

func (m month) next() month { return monthOf(m.start + m.length) }

func floorMod(a, b int64) int64 { return (a%b + b) % b }

func floorDiv(a, b int64) int64 { return (a - floorMod(a, b)) / b }
