package cron

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestFields(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		field int
		text  string
		want  string
	}{
		{0, "0", "[0]"},
		{0, "05", "[5]"},
		{0, "5/15", "[5 20 35 50]"},
		{0, "1-30/9", "[1 10 19 28]"},
		{0, "3-3", "[3]"},
		{0, "*/60", "[0]"},
		{0, "40,10-12,*/30", "[0 10 11 12 30 40]"},
		{1, "*/7", "[0 7 14 21]"},
		{1, "22/1", "[22 23]"},
		{2, "*/10", "[1 11 21 31]"},
		{2, "30/1", "[30 31]"},
		{3, "*/5", "[1 6 11]"},
		{3, "jan,MAR-May", "[1 3 4 5]"},
		{3, "Oct/1", "[10 11 12]"},
		{3, "feb-12/5", "[2 7 12]"},
		{4, "*", "[0 1 2 3 4 5 6]"},
		{4, "?", "[0 1 2 3 4 5 6]"},
		{4, "*/7", "[0]"},
		{4, "0,7", "[0 7]"},
		{4, "5-7", "[5 6 7]"},
		{4, "FRI-SUN", "[5 6 7]"},
		{4, "SUN-TUE", "[0 1 2]"},
		{4, "sun-sun", "[0]"},
		{4, "1/2", "[1 3 5]"},
		{4, "7/2", "[7]"},
		{4, "mon,Wed,FRI", "[1 3 5]"},
	} {
		set, err := fields[c.field].parse(c.text)
		var got []int
		for i := range 64 {
			if set>>i&1 != 0 {
				got = append(got, i)
			}
		}
		if err != nil || fmt.Sprint(got) != c.want {
			t.Errorf("%s %q: %v, %v, want %s", fields[c.field].name, c.text, got, err, c.want)
		}
	}
}

func TestGoodSpecs(t *testing.T) {
	t.Parallel()
	after := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC) // a Sunday
	for _, c := range []struct{ spec, want string }{
		{"@yearly", "2027-01-01T00:00:00Z"},
		{"@annually", "2027-01-01T00:00:00Z"},
		{"@monthly", "2026-12-01T00:00:00Z"},
		{"@weekly", "2026-12-06T00:00:00Z"},
		{"@daily", "2026-11-30T00:00:00Z"},
		{"@midnight", "2026-11-30T00:00:00Z"},
		{"@hourly", "2026-11-29T13:00:00Z"},
		{"@every 90s", "2026-11-29T12:01:30Z"},
		{"@every 1h30m", "2026-11-29T13:30:00Z"},
		{"@every 87600h", "2029-12-17T00:00:00Z"},
		{" \t0  9\t* * * ", "2026-11-30T09:00:00Z"},
		{"0 0 ? * ?", "2026-11-30T00:00:00Z"},
		{"0 0 31 2 1", "2027-02-01T00:00:00Z"}, // or: each Monday of February
		{"0 0 31 */2 *", "2027-01-31T00:00:00Z"},
		{"0 0 29 2 *", "2028-02-29T00:00:00Z"},
	} {
		s, err := Parse(c.spec, nil)
		if err != nil {
			t.Errorf("%q: %v", c.spec, err)
			continue
		}
		if got, ok := s.Next(after); !ok || got.Format(time.RFC3339) != c.want || s.String() != c.spec {
			t.Errorf("%q: %v, %v, want %s", s, got, ok, c.want)
		}
	}
}

func TestBadSpecs(t *testing.T) {
	t.Parallel()
	newYork := load(t, "America/New_York")
	for _, c := range []struct{ spec, want string }{
		{"", `spec "": is empty`},
		{" \t ", `is empty`},
		{"* * * *", `spec "* * * *": has 4 fields, want 5`},
		{"* * * * * *", `none for seconds`},
		{"* * * * *\n", `day of week "*\n": want 0 to 7, or SUN to SAT`},
		{"60 * * * *", `minute "60": want 0 to 59`},
		{"-1 * * * *", `minute "-1": want 0 to 59`},
		{"+1 * * * *", `minute "+1": want 0 to 59`},
		{"1.5 * * * *", `minute "1.5"`},
		{"99999999999999999999 * * * *", `minute "99999999999999999999": want 0 to 59`},
		{"* 24 * * *", `hour "24": want 0 to 23`},
		{"* * 0 * *", `day of month "0": want 1 to 31`},
		{"* * 32 * *", `day of month "32": want 1 to 31`},
		{"* * L * *", `day of month "L": want 1 to 31`},
		{"* * * 13 *", `month "13": want 1 to 12, or JAN to DEC`},
		{"* * * january *", `month "january": want 1 to 12, or JAN to DEC`},
		{"* * * * 8", `day of week "8": want 0 to 7, or SUN to SAT`},
		{"* * * * jan", `day of week "jan"`},
		{"* * * * 5#2", `day of week "5#2"`},
		{"* jan * * *", `hour "jan"`},
		{"? * * * *", `minute "?"`},
		{"* * ?/2 * *", `day of month "?/2"`},
		{"* * 1,? * *", `day of month "?"`},
		{"1, * * * *", `minute ""`},
		{",1 * * * *", `minute ""`},
		{"1- * * * *", `minute "1-"`},
		{"-5 * * * *", `minute "-5"`},
		{"1-2-3 * * * *", `minute "1-2-3"`},
		{"1--2 * * * *", `minute "1--2"`},
		{"*-5 * * * *", `minute "*-5"`},
		{"** * * * *", `minute "**"`},
		{"1-60 * * * *", `minute "1-60": want 0 to 59`},
		{"30-10 * * * *", `minute "30-10": the range runs backwards`},
		{"0 0 * * FRI-MON", `day of week "FRI-MON": the range runs backwards`},
		{"0 0 * * 5-0", `day of week "5-0": the range runs backwards`},
		{"0 0 * DEC-FEB *", `month "DEC-FEB": the range runs backwards`},
		{"*/0 * * * *", `minute "*/0": want a step of 1 to 60`},
		{"*/61 * * * *", `minute "*/61": want a step of 1 to 60`},
		{"*/ * * * *", `minute "*/"`},
		{"*/-1 * * * *", `minute "*/-1"`},
		{"*/2/2 * * * *", `minute "*/2/2"`},
		{"/2 * * * *", `minute "/2"`},
		{"0 */25 * * *", `hour "*/25": want a step of 1 to 24`},
		{"0 0 31 2 *", `is never due`},
		{"0 0 30 2 *", `is never due`},
		{"0 0 31 4,6,9,11 ?", `is never due`},
		{"*/5 2 8-14 3 */7", `the clocks jump over each of its times`}, // the Sunday on which New York jumps
		{"TZ=", `a field of its own`},
		{"TZ=UTC", `a field of its own`},
		{"TZ=UTC 0 0 * * *", `a field of its own`},
		{"CRON_TZ=Asia/Tokyo 0 0 * * *", `a field of its own`},
		{"@", `no such macro`},
		{"@reboot", `no such macro: want @yearly`},
		{"@Daily", `no such macro`},
		{"@daily 1", `no such macro`},
		{"@every", `@every "": want a duration`},
		{"@every1h", `no such macro`},
		{"@every 0s", `@every "0s": want 1s to 87600h`},
		{"@every -1h", `@every "-1h": want 1s to 87600h`},
		{"@every 500ms", `want 1s to 87600h`},
		{"@every 1.5s", `@every "1.5s": want whole seconds`},
		{"@every 87601h", `want 1s to 87600h`},
		{"@every 1h 30m", `@every "1h 30m": want a duration`},
		{"@every 5", `want a duration`},
		{"\xff\x00", `has 1 fields`},
		{strings.Repeat("1,", 124) + "1 * * * *", `257 bytes long, want at most 256`},
	} {
		s, err := Parse(c.spec, newYork)
		var typed *ParseError
		if err == nil || s != nil || !errors.As(err, &typed) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s", c.spec, err, c.want)
		}
	}
	if _, err := Parse(strings.Repeat("1,", 123)+"10 * * * *", nil); err != nil {
		t.Errorf("256 bytes: %v", err)
	}
	if _, err := Parse("*/5 2 8-14 3 */7", nil); err != nil {
		t.Errorf("in UTC no clock jumps: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	zones := []*time.Location{time.UTC, load(f, "America/New_York"), load(f, "Australia/Lord_Howe"), load(f, "Pacific/Apia")}
	for i, w := range wishes {
		f.Add(w.spec, i, int64(1_300_000_000+i*10_000_000))
	}
	for _, spec := range []string{"", "TZ=", "@every 0s", "@every 1s", "0 0 31 2 *", "*/5 2 8-14 3 */7", "0 0 29 2 */7", "FRI-SUN"} {
		f.Add(spec, 1, int64(0))
	}
	f.Fuzz(func(t *testing.T, spec string, which int, unix int64) {
		zone := zones[uint(which)%uint(len(zones))]
		s, err := Parse(spec, zone)
		if err != nil {
			if typed, ok := err.(*ParseError); !ok || typed.Field == "" || typed.Problem == "" {
				t.Fatalf("%q: untyped or empty error %v", spec, err)
			}
			return
		}
		after := time.Unix(unix%200_000_000_000, 0)
		start, walked := after, []time.Time(nil)
		for range 20 {
			next, ok := s.Next(after)
			if !ok {
				break
			}
			if !next.After(after) || next.Nanosecond() != 0 {
				t.Fatalf("%q in %s: %v comes after %v", spec, zone, next, after)
			}
			if local := next.In(zone); s.every == 0 && !s.fixed && (local.Second() != 0 ||
				s.calendar.minutes>>local.Minute()&1 == 0 || s.calendar.hours>>local.Hour()&1 == 0 || s.calendar.months>>local.Month()&1 == 0) {
				t.Fatalf("%q in %s: %v does not match", spec, zone, local)
			}
			walked, after = append(walked, next), next
		}
		if last, total := s.Last(start, after, 5); total != int64(len(walked)) || !slices.Equal(last, walked[max(0, len(walked)-5):]) {
			t.Fatalf("%q in %s after %v: last %v of %d, want the end of %v", spec, zone, start, last, total, walked)
		}
	})
}
