package cron

import (
	"fmt"
	"strings"
	"time"
)

// MaxSpec is how many bytes a spec may have.
const MaxSpec = 256

// MaxEvery is the longest duration of @every: ten years of 365 days.
const MaxEvery = 10 * 365 * 24 * time.Hour

// ParseError says which part of a spec is wrong, and what would be right.
type ParseError struct {
	Field   string // "minute", "hour", "day of month", "month", "day of week", "@every", or "spec" for all of it
	Value   string // the part that is wrong, at most MaxSpec bytes of it
	Problem string
}

func (e *ParseError) Error() string {
	return fmt.Sprintf("cron: %s %q: %s", e.Field, e.Value, e.Problem)
}

func specError(spec, format string, args ...any) *ParseError {
	return &ParseError{Field: "spec", Value: spec, Problem: fmt.Sprintf(format, args...)}
}

var macros = map[string]string{
	"@yearly":   "0 0 1 1 *",
	"@annually": "0 0 1 1 *",
	"@monthly":  "0 0 1 * *",
	"@weekly":   "0 0 * * 0",
	"@daily":    "0 0 * * *",
	"@midnight": "0 0 * * *",
	"@hourly":   "0 * * * *",
}

const wantMacro = "want @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly, or @every with a duration"

// Parse reads a spec. The zone is that of its fields; nil is UTC. What can never be due is an error, such as the 31st of
// February, or a time that each year falls into the jump of the zone's clocks. All errors are of type *ParseError.
func Parse(spec string, zone *time.Location) (*Schedule, error) {
	if len(spec) > MaxSpec {
		return nil, specError(spec[:MaxSpec], "%d bytes long, want at most %d", len(spec), MaxSpec)
	}
	if zone == nil {
		zone = time.UTC
	}
	s := &Schedule{spec: spec, zone: zone}
	words := strings.FieldsFunc(spec, func(r rune) bool { return r == ' ' || r == '\t' })
	switch {
	case len(words) == 0:
		return nil, specError(spec, "is empty: want five fields, or a macro such as @daily")
	case strings.HasPrefix(words[0], "TZ="), strings.HasPrefix(words[0], "CRON_TZ="):
		return nil, specError(spec, "holds a time zone: the zone has a field of its own beside the spec")
	case words[0] == "@every":
		if err := s.parseEvery(words[1:]); err != nil {
			return nil, err
		}
		return s, nil
	case words[0][0] == '@':
		fields, ok := macros[words[0]]
		if !ok || len(words) > 1 {
			return nil, specError(spec, "no such macro: %s", wantMacro)
		}
		words = strings.Fields(fields)
	}
	if err := s.parseFields(words); err != nil {
		return nil, err
	}
	// Rules of zones repeat with the calendar, which does so every 400 years; the tables before the rules reach no
	// further than this century. So what is not found within the horizon will not come, and one look is a proof.
	if _, ok := s.Next(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)); !ok {
		return nil, specError(spec, "is never due: there is no such day, or in %s the clocks jump over each of its times", zone)
	}
	return s, nil
}

func (s *Schedule) parseEvery(words []string) error {
	value := strings.Join(words, " ")
	fail := func(problem string) error { return &ParseError{Field: "@every", Value: value, Problem: problem} }
	d, err := time.ParseDuration(value)
	switch {
	case err != nil:
		return fail("want a duration such as 90s or 1h30m")
	case d < time.Second || d > MaxEvery:
		return fail(fmt.Sprintf("want 1s to %dh", MaxEvery/time.Hour))
	case d%time.Second != 0:
		return fail("want whole seconds")
	}
	s.every = int64(d / time.Second)
	return nil
}

func (s *Schedule) parseFields(words []string) error {
	if len(words) != len(fields) {
		hint := ""
		if len(words) > len(fields) {
			hint = "; there is none for seconds or years"
		}
		return specError(s.spec, "has %d fields, want %d: minute, hour, day of month, month, day of week%s",
			len(words), len(fields), hint)
	}
	var sets [len(fields)]uint64
	for i := range fields {
		set, err := fields[i].parse(words[i])
		if err != nil {
			return err
		}
		sets[i] = set
	}
	const sunday, seventh = 1 << 0, 1 << 7
	if sets[4]&seventh != 0 {
		sets[4] = sets[4]&^seventh | sunday
	}
	s.calendar = calendar{
		minutes: sets[0], hours: uint32(sets[1]), days: uint32(sets[2]), months: uint16(sets[3]), weekdays: uint8(sets[4]),
		either: !open(words[2]) && !open(words[4]),
	}
	s.fixed = !open(words[0]) && !open(words[1])
	return nil
}

// open says whether the field counts as one without restriction. It goes by the first character, as Vixie's cron does,
// so "*/2" is open and "1,*/2" is not.
func open(field string) bool { return field[0] == '*' || field[0] == '?' }
