package cron

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"
)

// wish is a spec together with what it means, spelled out by hand, so that the oracle shares nothing with the parser.
type wish struct {
	spec                              string
	minute, hour, dom, month, weekday string // numbers and ranges; empty is all
	fixed                             bool   // the rules for fixed times apply
	either                            bool   // one of dom and weekday is enough
}

var wishes = []wish{
	{spec: "* * * * *"},
	{spec: "*/5 * * * *", minute: "0 5 10 15 20 25 30 35 40 45 50 55"},
	{spec: "@hourly", minute: "0"},
	{spec: "7 * * * *", minute: "7"},
	{spec: "5/15 * * * *", minute: "5 20 35 50"},
	{spec: "*/10 2 * * *", minute: "0 10 20 30 40 50", hour: "2"},
	{spec: "* 0 * * *", hour: "0"},
	{spec: "30 */2 * * *", minute: "30", hour: "0 2 4 6 8 10 12 14 16 18 20 22"},
	{spec: "@daily", minute: "0", hour: "0", fixed: true},
	{spec: "@midnight", minute: "0", hour: "0", fixed: true},
	{spec: "0 12 * * *", minute: "0", hour: "12", fixed: true},
	{spec: "30 2 * * *", minute: "30", hour: "2", fixed: true},
	{spec: "15 2 * * *", minute: "15", hour: "2", fixed: true},
	{spec: "30 1 * * *", minute: "30", hour: "1", fixed: true},
	{spec: "45 1 * * *", minute: "45", hour: "1", fixed: true},
	{spec: "0 3 * * *", minute: "0", hour: "3", fixed: true},
	{spec: "0,20,40 2,3 * * *", minute: "0 20 40", hour: "2 3", fixed: true},
	{spec: "30 23 * * *", minute: "30", hour: "23", fixed: true},
	{spec: "0-59 0-3 * * *", hour: "0 1 2 3", fixed: true},
	{spec: "1-30/7 0-23 * * *", minute: "1 8 15 22 29", fixed: true},
	{spec: "@weekly", minute: "0", hour: "0", weekday: "0", fixed: true},
	{spec: "0 0 * * 7", minute: "0", hour: "0", weekday: "0", fixed: true},
	{spec: "30 2 * * SUN", minute: "30", hour: "2", weekday: "0", fixed: true},
	{spec: "0 9 * * mon-FRI", minute: "0", hour: "9", weekday: "1 2 3 4 5", fixed: true},
	{spec: "0 0 * * fri-sun", minute: "0", hour: "0", weekday: "5 6 0", fixed: true},
	{spec: "@monthly", minute: "0", hour: "0", dom: "1", fixed: true},
	{spec: "@yearly", minute: "0", hour: "0", dom: "1", month: "1", fixed: true},
	{spec: "0 0 13 * 5", minute: "0", hour: "0", dom: "13", weekday: "5", fixed: true, either: true},
	{spec: "0 0 */2 * 5", minute: "0", hour: "0", dom: "1 3 5 7 9 11 13 15 17 19 21 23 25 27 29 31", weekday: "5", fixed: true},
	{spec: "0 0 1,*/2 * 5", minute: "0", hour: "0", dom: "1 3 5 7 9 11 13 15 17 19 21 23 25 27 29 31", weekday: "5", fixed: true, either: true},
	{spec: "0 0 ? * 5", minute: "0", hour: "0", weekday: "5", fixed: true},
	{spec: "*/30 2 8-14 3,11 */3", minute: "0 30", hour: "2", dom: "8 9 10 11 12 13 14", month: "3 11", weekday: "0 3 6"},
	{spec: "0 0 31 * ?", minute: "0", hour: "0", dom: "31", fixed: true},
	{spec: "59 23 30 dec *", minute: "59", hour: "23", dom: "30", month: "12", fixed: true},
}

// shown is a second at which the oracle looks at the clock on the wall.
type shown struct {
	unix, local int64 // local: what the wall shows, as if it were UTC
	month, dom  uint8
	hour, min   uint8
	weekday     uint8
}

// wall looks at a zone's clock every step seconds, starting four days early, and calls with what it shows.
func wall(zone *time.Location, from, to time.Time, step int64) []shown {
	var all []shown
	for unix := from.Unix() - 4*86400; unix <= to.Unix(); unix += step {
		t := time.Unix(unix, 0).In(zone)
		year, month, dom := t.Date()
		hour, minute, second := t.Clock()
		all = append(all, shown{unix: unix, month: uint8(month), dom: uint8(dom), hour: uint8(hour), min: uint8(minute),
			weekday: uint8(t.Weekday()),
			local:   time.Date(year, month, dom, hour, minute, second, 0, time.UTC).Unix()})
	}
	return all
}

type oracle struct {
	wish
	minutes, hours, doms, months, weekdays [64]bool
}

func newOracle(w wish) *oracle {
	o := &oracle{wish: w}
	for _, x := range []struct {
		text string
		set  *[64]bool
	}{{w.minute, &o.minutes}, {w.hour, &o.hours}, {w.dom, &o.doms}, {w.month, &o.months}, {w.weekday, &o.weekdays}} {
		for i := range x.set {
			x.set[i] = x.text == ""
		}
		for _, word := range strings.Fields(x.text) {
			n, err := strconv.Atoi(word)
			if err != nil {
				panic(err)
			}
			x.set[n] = true
		}
	}
	return o
}

func (o *oracle) matches(c *shown) bool {
	if c.local%60 != 0 || !o.minutes[c.min] || !o.hours[c.hour] || !o.months[c.month] {
		return false
	}
	if o.either {
		return o.doms[c.dom] || o.weekdays[c.weekday]
	}
	return o.doms[c.dom] && o.weekdays[c.weekday]
}

// ticks goes through what the wall shows, second by second or minute by minute, and notes which local times it has seen.
func (o *oracle) ticks(clock []shown, step int64, after time.Time) []int64 {
	low, high := clock[0].local, clock[0].local
	for i := range clock {
		low, high = min(low, clock[i].local), max(high, clock[i].local)
	}
	seen := make([]bool, (high-low)/step+1)
	var ticks []int64
	for i := range clock {
		c := &clock[i]
		at := (c.local - low) / step
		due := o.matches(c) && !(o.fixed && seen[at])
		if o.fixed && i > 0 {
			for skipped := clock[i-1].local + step; skipped < c.local; skipped += step {
				if n := (skipped - low) / step; !seen[n] {
					t := time.Unix(skipped, 0).UTC()
					due = due || o.matches(&shown{local: skipped, month: uint8(t.Month()), dom: uint8(t.Day()),
						hour: uint8(t.Hour()), min: uint8(t.Minute()), weekday: uint8(t.Weekday())})
					seen[n] = true // made up for
				}
			}
		}
		seen[at] = true
		if due && c.unix > after.Unix() {
			ticks = append(ticks, c.unix)
		}
	}
	return ticks
}

// compare lets the schedule answer all its questions and looks the answers up in the oracle's ticks.
func compare(t *testing.T, w wish, zone *time.Location, after, upTo time.Time, want []int64) {
	t.Helper()
	s, err := Parse(w.spec, zone)
	if err != nil {
		t.Fatal(err)
	}
	got := slices.AppendSeq(make([]int64, 0, len(want)), s.ticks(after.Unix()+1, upTo.Unix()+1))
	if !slices.Equal(got, want) {
		i := 0
		for i < len(got) && i < len(want) && got[i] == want[i] {
			i++
		}
		t.Errorf("%q in %s: %d ticks, want %d; from the first that differs: %s, want %s", w.spec, zone, len(got), len(want),
			show(got[i:], zone), show(want[i:], zone))
		return
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		a := after.Unix() + random.Int64N(upTo.Unix()-after.Unix())
		b := a + random.Int64N(upTo.Unix()-a+1)
		if random.IntN(2) == 0 && len(want) > 0 {
			a = min(want[random.IntN(len(want))], b) // exactly at a tick
		}
		i, found := slices.BinarySearch(want, a)
		if found {
			i++
		}
		j, found := slices.BinarySearch(want, b)
		if found {
			j++
		}
		if next, ok := s.Next(time.Unix(a, 0)); i < len(want) && (!ok || next.Unix() != want[i]) {
			t.Errorf("%q in %s: after %d comes %v, want %s", w.spec, zone, a, next, show(want[i:], zone))
		}
		n := random.IntN(5)
		last, total := s.Last(time.Unix(a, 0), time.Unix(b, 0), n)
		if total != int64(j-i) {
			t.Errorf("%q in %s: %d ticks in (%d, %d], want %d", w.spec, zone, total, a, b, j-i)
		}
		var unix []int64
		for _, x := range last {
			unix = append(unix, x.Unix())
		}
		if !slices.Equal(unix, want[max(i, j-n):j]) {
			t.Errorf("%q in %s: last %d of (%d, %d]: %v, want %v", w.spec, zone, n, a, b, unix, want[max(i, j-n):j])
		}
	}
}

// show prints the first few ticks.
func show(ticks []int64, zone *time.Location) string {
	var text []string
	for _, x := range ticks[:min(3, len(ticks))] {
		text = append(text, time.Unix(x, 0).In(zone).Format(time.RFC3339))
	}
	return strings.Join(text, " ")
}

func load(t testing.TB, name string) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}
