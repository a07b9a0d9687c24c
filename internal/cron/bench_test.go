package cron

import (
	"fmt"
	"testing"
	"time"
)

func BenchmarkNext(b *testing.B) {
	for _, c := range []struct{ spec, zone string }{
		{"* * * * *", "UTC"},
		{"* * * * *", "Europe/Berlin"},
		{"30 2 * * *", "Europe/Berlin"},
		{"0 0 29 2 *", "Europe/Berlin"},
		{"0 0 29 2 */7", "Europe/Berlin"},
		{"@every 90s", "UTC"},
	} {
		b.Run(c.spec+" "+c.zone, func(b *testing.B) {
			s, err := Parse(c.spec, load(b, c.zone))
			if err != nil {
				b.Fatal(err)
			}
			after := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
			b.ReportAllocs()
			for b.Loop() {
				s.Next(after)
			}
		})
	}
}

func BenchmarkLast(b *testing.B) {
	s, err := Parse("* * * * *", load(b, "Europe/Berlin"))
	if err != nil {
		b.Fatal(err)
	}
	upTo := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	for _, years := range []int{1, 10, 1000} {
		b.Run(fmt.Sprint(years, " years"), func(b *testing.B) {
			for b.Loop() {
				s.Last(upTo.AddDate(-years, 0, 0), upTo, 100)
			}
		})
	}
}

// What is never due costs most: the search goes through all of its horizon.
func BenchmarkParseNever(b *testing.B) {
	zone := load(b, "America/New_York")
	for _, spec := range []string{"0 0 31 2 *", "*/5 2 8-14 3 */7"} {
		b.Run(spec, func(b *testing.B) {
			for b.Loop() {
				if _, err := Parse(spec, zone); err == nil {
					b.Fatal("no error")
				}
			}
		})
	}
}
