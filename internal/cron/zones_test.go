package cron

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

var underRace bool

// zonesOf is how many of its zones a test looks at; the telling ones come first.
func zonesOf(all, racing, short int) int {
	switch {
	case testing.Short():
		return short
	case underRace:
		return racing
	}
	return all
}

// Whole years, minute by minute: each zone has its own way to be difficult.
func TestYearsEqualOracle(t *testing.T) {
	t.Parallel()
	for i, c := range []struct {
		zone        string
		year, years int
	}{
		{"America/New_York", 2025, 2},
		{"Australia/Lord_Howe", 2025, 2}, // jumps by half an hour
		{"Antarctica/Troll", 2025, 2},    // jumps by two
		{"America/Santiago", 2025, 2},    // midnight is missing
		{"Africa/Cairo", 2025, 2},        // midnight is missing
		{"UTC", 2025, 2},
		{"Europe/Berlin", 2025, 2},
		{"Asia/Beirut", 2025, 2},       // midnight is missing
		{"America/Havana", 2025, 2},    // midnight is missing
		{"Africa/Casablanca", 2025, 2}, // summer time pauses for Ramadan
		{"Pacific/Apia", 2025, 2},
		{"Asia/Kolkata", 2025, 2},
		{"Asia/Kathmandu", 2025, 2},
		{"America/Sao_Paulo", 2025, 2},
		{"Pacific/Chatham", 2025, 1},
		{"Pacific/Apia", 2011, 1}, // has no 30 December
		{"America/Sao_Paulo", 2018, 1},
		{"Antarctica/Troll", 2016, 1},
		{"Africa/Cairo", 2010, 1}, // four changes
		{"Europe/Moscow", 2014, 1},
		{"America/Caracas", 2007, 1}, // back by half an hour, for good
		{"Asia/Pyongyang", 2018, 1},
		{"Antarctica/Casey", 2018, 1},  // three hours
		{"America/New_York", 2040, 1},  // by rule, and a leap year
		{"Australia/Sydney", 2044, 1},  // the same in the south
		{"Africa/Casablanca", 2086, 2}, // the end of its table
	} {
		if i >= zonesOf(26, 6, 4) {
			break
		}
		t.Run(fmt.Sprintf("%s/%d", c.zone, c.year), func(t *testing.T) {
			t.Parallel()
			zone := load(t, c.zone)
			after := time.Date(c.year, 1, 1, 0, 0, 0, 0, time.UTC)
			upTo := after.AddDate(c.years, 0, 0)
			clock := wall(zone, after, upTo, 60)
			for _, w := range wishes {
				compare(t, w, zone, after, upTo, newOracle(w).ticks(clock, 60, after))
			}
		})
	}
}

// Days with odd offsets or jumps of a day, second by second.
func TestOddDaysEqualOracle(t *testing.T) {
	t.Parallel()
	for i, c := range []struct{ zone, date string }{
		{"Africa/Monrovia", "1972-01-07"},   // forward by 44:30
		{"America/New_York", "1883-11-18"},  // back by 3:58
		{"Europe/Paris", "1911-03-10"},      // back by 9:21
		{"Asia/Manila", "1844-12-31"},       // a day is missing
		{"America/Juneau", "1867-10-18"},    // a day comes twice
		{"Pacific/Kwajalein", "1993-08-21"}, // a day is missing
		{"Asia/Kolkata", "1906-01-01"},
	} {
		if i >= zonesOf(7, 3, 2) {
			break
		}
		t.Run(c.zone, func(t *testing.T) {
			t.Parallel()
			zone := load(t, c.zone)
			date, err := time.Parse(time.DateOnly, c.date)
			if err != nil {
				t.Fatal(err)
			}
			bySecond(t, zone, date.AddDate(0, 0, -2), date.AddDate(0, 0, 2))
		})
	}
}

// Zones that no government thought of: jumps back and forth within hours, by any number of seconds.
func TestInventedZonesEqualOracle(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	for i := range 12 {
		start := time.Date(2020, 2, 26, 0, 0, 0, 0, time.UTC)
		var changes []change
		for at := start.Unix() + 86400; at < start.Unix()+4*86400; at += 60 + random.Int64N(86400>>(i%8)) {
			changes = append(changes, change{at, random.Int32N(24*3600>>(i%5)) - 12*3600>>(i%5)})
		}
		zone := invent(t, fmt.Sprint("invented-", i), changes)
		if i >= zonesOf(12, 4, 2) {
			break
		}
		t.Run(zone.String(), func(t *testing.T) {
			t.Parallel()
			bySecond(t, zone, start, start.AddDate(0, 0, 6))
		})
	}
}

func bySecond(t *testing.T, zone *time.Location, after, upTo time.Time) {
	t.Helper()
	clock := wall(zone, after, upTo, 1)
	for _, w := range wishes {
		compare(t, w, zone, after, upTo, newOracle(w).ticks(clock, 1, after))
	}
}

// change is an instant at which a zone begins to have an offset.
type change struct {
	at     int64
	offset int32
}

// invent makes a zone, in the first version of the format of RFC 8536: header, instants, their types, types, names.
func invent(t *testing.T, name string, changes []change) *time.Location {
	t.Helper()
	b := append([]byte("TZif"), make([]byte, 16)...)
	n := uint32(len(changes))
	for _, count := range []uint32{0, 0, 0, n, n + 1, 4} {
		b = binary.BigEndian.AppendUint32(b, count)
	}
	for _, c := range changes {
		b = binary.BigEndian.AppendUint32(b, uint32(c.at))
	}
	for i := range changes {
		b = append(b, byte(i+1))
	}
	b = append(b, 0, 0, 0, 0, 0, 0)
	for _, c := range changes {
		b = append(binary.BigEndian.AppendUint32(b, uint32(c.offset)), 0, 0)
	}
	zone, err := time.LoadLocationFromTZData(name, append(b, "INV\x00"...))
	if err != nil {
		t.Fatal(err)
	}
	return zone
}
