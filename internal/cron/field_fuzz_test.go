package cron

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// naiveField reads a field value by value, as the package's documentation describes it.
func naiveField(f *field, text string) (values []int, ok bool) {
	if text == "?" {
		text = "*"
		if !f.isDay {
			return nil, false
		}
	}
	element := regexp.MustCompile(`\A(?:(\*)|([0-9]+|[A-Za-z]{3})(?:-([0-9]+|[A-Za-z]{3}))?)(?:/([0-9]+))?\z`)
	value := func(word string) int {
		if n, err := strconv.Atoi(word); err == nil && n >= f.min && n <= f.more {
			return n
		}
		if i := slices.Index(f.names, strings.ToLower(word)); i >= 0 {
			return f.min + i
		}
		return -1
	}
	for _, part := range strings.Split(text, ",") {
		m := element.FindStringSubmatch(part)
		if m == nil {
			return nil, false
		}
		from, to := f.min, f.max
		if m[1] == "" {
			from = value(m[2])
			switch {
			case m[3] != "":
				to = value(m[3])
				if f.name == "day of week" && strings.EqualFold(m[3], "sun") && from > 0 {
					to = 7
				}
			case m[4] == "":
				to = from
			default:
				to = max(from, f.max)
			}
		}
		step := 1
		if m[4] != "" {
			var err error
			if step, err = strconv.Atoi(m[4]); err != nil || step < 1 || step > f.max-f.min+1 {
				return nil, false
			}
		}
		if from < 0 || to < from {
			return nil, false
		}
		for v := from; v <= to; v += step {
			values = append(values, v)
		}
	}
	return values, true
}

// FuzzField compares with the naive reading, and has what was read written as a list and read as the same.
func FuzzField(f *testing.F) {
	for i := range fields {
		for _, text := range []string{"*", "*/5", "1-5/2", "mon-fri", "FRI-SUN", "7", "1,2,2", "?", "5/15", "0-7", "sun", "dec", "jan-DEC/3", "", ",", "1-", "-1", "5-1",
			"*/0", "*/99", "+1", "01", "99999999999999999999", "7-sun", "sun-sun", "ſun", "*-5", "7/2"} {
			f.Add(uint8(i), text)
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, text string) {
		field := &fields[int(which)%len(fields)]
		set, err := field.parse(text)
		values, ok := naiveField(field, text)
		if (err == nil) != ok {
			t.Fatalf("%s %q: %v, want %v", field.name, text, err, ok)
		}
		if err != nil {
			return
		}
		want := uint64(0)
		var list []string
		for _, v := range values {
			want |= 1 << v
			list = append(list, strconv.Itoa(v))
		}
		if set != want {
			t.Errorf("%s %q: %b, want %b", field.name, text, set, want)
		}
		if again, err := field.parse(strings.Join(list, ",")); err != nil || again != set {
			t.Errorf("%s %q is %s, which is %b, %v", field.name, text, strings.Join(list, ","), again, err)
		}
	})
}
