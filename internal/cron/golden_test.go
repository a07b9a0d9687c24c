package cron

import (
	"slices"
	"testing"
	"time"
)

// What other libraries get wrong, and what their users ask about: the ticks of some days, in local time.
func TestClockChanges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		about, spec, zone string
		from              string // local midnight, or noon where there is no midnight
		hours             int
		want              []string
	}{
		{"a time that does not exist", "30 2 * * *", "America/New_York", "2026-03-08T00:00", 36,
			[]string{"2026-03-08T03:00:00-04:00", "2026-03-09T02:30:00-04:00"}},
		{"a time that comes twice", "30 1 * * *", "America/New_York", "2026-11-01T00:00", 24,
			[]string{"2026-11-01T01:30:00-04:00"}},
		{"every hour, with one twice", "0 * * * *", "America/New_York", "2026-11-01T00:30", 3,
			[]string{"2026-11-01T01:00:00-04:00", "2026-11-01T01:00:00-05:00", "2026-11-01T02:00:00-05:00"}},
		{"every hour, without one", "0 * * * *", "America/New_York", "2026-03-08T00:30", 3,
			[]string{"2026-03-08T01:00:00-05:00", "2026-03-08T03:00:00-04:00", "2026-03-08T04:00:00-04:00"}},
		{"a wildcard in the missing hour", "*/20 2 * * *", "America/New_York", "2026-03-08T00:00", 25,
			[]string{"2026-03-09T02:00:00-04:00"}},
		{"several times in one gap", "0,20,40 2 * * *", "America/New_York", "2026-03-08T00:00", 12,
			[]string{"2026-03-08T03:00:00-04:00"}},
		{"in the gap and right after it", "0 2,3 * * *", "America/New_York", "2026-03-08T00:00", 12,
			[]string{"2026-03-08T03:00:00-04:00"}},
		{"every hour by name is fixed", "0 0-3 * * *", "America/New_York", "2026-11-01T00:30", 5,
			[]string{"2026-11-01T01:00:00-04:00", "2026-11-01T02:00:00-05:00", "2026-11-01T03:00:00-05:00"}},
		{"no midnight", "0 0 * * *", "America/Santiago", "2026-09-05T12:00", 24, []string{"2026-09-06T01:00:00-03:00"}},
		{"no midnight", "0 0 * * *", "Africa/Cairo", "2026-04-23T12:00", 24, []string{"2026-04-24T01:00:00+03:00"}},
		{"no midnight", "0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00", 24, []string{"2018-11-04T01:00:00-02:00"}},
		{"no midnight of that weekday", "@weekly", "America/Santiago", "2026-09-05T12:00", 24, []string{"2026-09-06T01:00:00-03:00"}},
		{"two midnights", "0 0 * * *", "America/Havana", "2026-10-31T12:00", 24, []string{"2026-11-01T00:00:00-04:00"}},
		{"a jump of half an hour", "15 2 * * *", "Australia/Lord_Howe", "2026-10-04T00:00", 12, []string{"2026-10-04T02:30:00+11:00"}},
		{"half an hour twice", "45 1 * * *", "Australia/Lord_Howe", "2026-04-05T00:00", 12, []string{"2026-04-05T01:45:00+11:00"}},
		{"a jump of two hours", "30 1,2 * * *", "Antarctica/Troll", "2026-03-29T00:00", 12, []string{"2026-03-29T03:00:00+02:00"}},
		{"a day that does not exist", "0 9 * * *", "Pacific/Apia", "2011-12-29T08:00", 48,
			[]string{"2011-12-29T09:00:00-10:00", "2011-12-31T00:00:00+14:00", "2011-12-31T09:00:00+14:00"}},
		{"a day that does not exist", "0 9 30 12 *", "Pacific/Apia", "2011-12-29T08:00", 48, []string{"2011-12-31T00:00:00+14:00"}},
		{"a day that does not exist", "0 */12 * * *", "Pacific/Apia", "2011-12-29T08:00", 24,
			[]string{"2011-12-29T12:00:00-10:00", "2011-12-31T00:00:00+14:00"}},
		{"day of month or of week", "0 0 13 * 5", "UTC", "2026-11-01T12:00", 20 * 24,
			[]string{"2026-11-06T00:00:00Z", "2026-11-13T00:00:00Z", "2026-11-20T00:00:00Z"}},
		{"a star with a step is a star", "0 0 */2 * 5", "UTC", "2026-11-01T12:00", 30 * 24,
			[]string{"2026-11-13T00:00:00Z", "2026-11-27T00:00:00Z"}},
		{"every 7 hours since 1970", "@every 7h", "America/New_York", "2026-11-01T00:00", 15,
			[]string{"2026-11-01T01:00:00-04:00", "2026-11-01T07:00:00-05:00", "2026-11-01T14:00:00-05:00"}},
	} {
		zone := load(t, c.zone)
		from, err := time.ParseInLocation("2006-01-02T15:04", c.from, zone)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Parse(c.spec, zone)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for at := range s.All(from, from.Add(time.Duration(c.hours)*time.Hour)) {
			got = append(got, at.In(zone).Format(time.RFC3339))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q in %s: %v, want %v", c.about, c.spec, c.zone, got, c.want)
		}
	}
}

func TestFarApart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ spec, zone, after, want string }{
		{"0 0 29 2 *", "UTC", "2096-02-29T00:00:00Z", "2104-02-29T00:00:00Z"},
		{"0 0 29 2 *", "UTC", "2096-02-28T23:59:59.5Z", "2096-02-29T00:00:00Z"},
		{"0 0 29 2 *", "UTC", "1896-02-29T00:00:00Z", "1904-02-29T00:00:00Z"},
		{"0 0 29 2 */7", "UTC", "2004-02-29T00:00:00Z", "2032-02-29T00:00:00Z"}, // on Sundays
		{"0 0 29 2 */7", "Asia/Tokyo", "2088-02-29T00:00:00Z", "2128-02-28T15:00:00Z"},
		{"* * * * *", "UTC", "0001-01-01T00:00:00Z", "0001-01-01T00:01:00Z"},
		{"@yearly", "America/New_York", "9998-12-31T00:00:00Z", "9999-01-01T05:00:00Z"},
		{"59 23 * * *", "UTC", "9999-12-31T00:00:00Z", "9999-12-31T23:59:00Z"},
	} {
		after, err := time.Parse(time.RFC3339, c.after)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Parse(c.spec, load(t, c.zone))
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := s.Next(after); !ok || got.Format(time.RFC3339) != c.want {
			t.Errorf("%q in %s after %s: %v, %v, want %s", c.spec, c.zone, c.after, got, ok, c.want)
		}
	}
}

func TestEdgesOfTime(t *testing.T) {
	t.Parallel()
	for _, spec := range []string{"* * * * *", "0 0 29 2 *", "@every 1s", "@every 87600h"} {
		s, err := Parse(spec, load(t, "Australia/Sydney"))
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := s.Next(time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)); ok {
			t.Errorf("%q: %v comes after the year 9999", spec, got)
		}
		for _, far := range []time.Time{time.Unix(1<<62, 0), time.Unix(-1<<62, 0), {}, time.Date(-5000, 1, 1, 0, 0, 0, 0, time.UTC)} {
			if got, ok := s.Next(far); ok && (got.Year() < 1 || !got.After(far)) {
				t.Errorf("%q: after %v comes %v", spec, far, got)
			}
			s.Last(far, far, 1)
			if ticks, total := s.Last(far.Add(time.Hour), far, 1); total != 0 || ticks != nil {
				t.Errorf("%q: %d ticks in a span that ends before it begins", spec, total)
			}
		}
	}
	// @every is anchored at the epoch on both sides of it.
	s, err := Parse("@every 90s", nil)
	if err != nil {
		t.Fatal(err)
	}
	ticks, total := s.Last(time.Unix(-180, 0), time.Unix(90, 0), 9)
	if want := []time.Time{time.Unix(-90, 0).UTC(), time.Unix(0, 0).UTC(), time.Unix(90, 0).UTC()}; total != 3 || !slices.Equal(ticks, want) {
		t.Errorf("@every 90s: %v (%d), want %v", ticks, total, want)
	}
}

func TestLastOfEverySecond(t *testing.T) {
	t.Parallel()
	s, err := Parse("@every 1s", nil)
	if err != nil {
		t.Fatal(err)
	}
	for seconds := range int64(70) {
		for n := range 70 {
			ticks, total := s.Last(time.Unix(1000-seconds, 5), time.Unix(1000, 5), n)
			if want := min(int64(n), seconds); total != seconds || int64(len(ticks)) != want || want > 0 && ticks[0].Unix() != 1001-want {
				t.Fatalf("last %d of %d: %v (%d)", n, seconds, ticks, total)
			}
		}
	}
	if ticks, total := s.Last(time.Unix(0, 0), time.Unix(1e9, 0), 5000); total != 1e9 || len(ticks) != 5000 || ticks[0].Unix() != 1e9-4999 {
		t.Errorf("last 5000: %d of %d", len(ticks), total)
	}
}

// A leader that was away must not spin: the whole of time, in a zone with many changes, takes milliseconds.
func TestLastOfEverything(t *testing.T) {
	t.Parallel()
	s, err := Parse("* * * * *", load(t, "America/New_York"))
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	end := time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	ticks, total := s.Last(time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), end, 100)
	if len(ticks) != 100 || !ticks[99].Equal(end.Add(-59*time.Second)) || total < 5_258_000_000 || total > 5_260_000_000 {
		t.Errorf("%d of %d ticks, up to %v", len(ticks), total, ticks[len(ticks)-1])
	}
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("took %v", took)
	}
	t.Logf("took %v", time.Since(start))
}
