package cron

import (
	"fmt"
	"strconv"
	"strings"
)

// field is one of the five: the values that it may hold, and how they may be spelled.
type field struct {
	name     string
	min, max int // max is also where "*" and "a/n" end
	more     int // the largest value that may be written
	names    []string
	isDay    bool // "?" is allowed
}

var fields = [5]field{
	{name: "minute", max: 59, more: 59},
	{name: "hour", max: 23, more: 23},
	{name: "day of month", min: 1, max: 31, more: 31, isDay: true},
	{name: "month", min: 1, max: 12, more: 12, names: strings.Fields("jan feb mar apr may jun jul aug sep oct nov dec")},
	// 7 is the Sunday that ends a week. "*" ends before it: "1/2" is Monday, Wednesday, Friday, and not Sunday as well.
	{name: "day of week", max: 6, more: 7, names: strings.Fields("sun mon tue wed thu fri sat"), isDay: true},
}

// fail makes the error for a part of the field.
func (f *field) fail(part, format string, args ...any) error {
	return &ParseError{Field: f.name, Value: part, Problem: fmt.Sprintf(format, args...)}
}

// want says what the field may hold.
func (f *field) want() string {
	text := fmt.Sprintf("want %d to %d", f.min, f.more)
	if len(f.names) > 0 {
		first, last := f.names[0], f.names[len(f.names)-1]
		text += fmt.Sprintf(", or %s to %s", strings.ToUpper(first), strings.ToUpper(last))
	}
	return text
}

// parse returns the values of the field as bits.
func (f *field) parse(text string) (uint64, error) {
	if text == "?" && f.isDay {
		text = "*"
	}
	var set uint64
	for part := range strings.SplitSeq(text, ",") {
		bits, err := f.parsePart(part)
		if err != nil {
			return 0, err
		}
		set |= bits
	}
	return set, nil
}

// parsePart reads one element of the list.
func (f *field) parsePart(part string) (uint64, error) {
	span, stepText, stepped := strings.Cut(part, "/")
	lo, hi, err := f.parseSpan(part, span, stepped)
	if err != nil {
		return 0, err
	}
	step := 1
	if stepped {
		// A larger step is a mistake: "*/90" minutes would be due every hour.
		largest := f.max - f.min + 1
		n, ok := number(stepText)
		if !ok || n < 1 || n > largest {
			return 0, f.fail(part, "want a step of 1 to %d after the slash", largest)
		}
		step = n
	}
	var set uint64
	for v := lo; v <= hi; v += step {
		set |= 1 << v
	}
	return set, nil
}

// parseSpan reads what is in front of the step: "*", "a" or "a-b".
func (f *field) parseSpan(part, span string, stepped bool) (lo, hi int, err error) {
	if span == "*" {
		return f.min, f.max, nil
	}
	first, last, ranged := strings.Cut(span, "-")
	lo, ok := f.value(first)
	if !ok {
		return 0, 0, f.fail(part, "%s", f.want())
	}
	switch {
	case ranged:
		if hi, ok = f.value(last); !ok {
			return 0, 0, f.fail(part, "%s", f.want())
		}
		if f.more > f.max && hi == f.min && lo > hi && strings.EqualFold(last, f.names[0]) {
			hi = f.more // FRI-SUN
		}
		if lo > hi {
			return 0, 0, f.fail(part, "the range runs backwards: write it as two, joined by a comma")
		}
	case stepped:
		hi = max(lo, f.max)
	default:
		hi = lo
	}
	return lo, hi, nil
}

// value reads a number or a name.
func (f *field) value(text string) (int, bool) {
	for i, name := range f.names {
		if len(text) == len(name) && strings.EqualFold(text, name) { // "ſ" folds to "s", and is longer
			return f.min + i, true
		}
	}
	n, ok := number(text)
	return n, ok && n >= f.min && n <= f.more
}

// number reads decimal digits, without the signs that strconv lets pass.
func number(text string) (int, bool) {
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil
}
