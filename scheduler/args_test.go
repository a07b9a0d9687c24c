package scheduler

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// args are what follows a command in a story: words, and values with a name. Reading a value that is wrong gives zero;
// wrong tells afterwards.
type args struct {
	words []string
	named map[string]string
	err   error
}

func parse(words []string) (*args, error) {
	if len(words) == 0 {
		return nil, fmt.Errorf("no command")
	}
	a := &args{named: map[string]string{}}
	for _, w := range words[1:] {
		if name, value, ok := strings.Cut(w, "="); ok {
			a.named[name] = value
		} else if w == "blocked" || w == "shared" {
			a.named[w] = ""
		} else {
			a.words = append(a.words, w)
		}
	}
	return a, nil
}

func (a *args) word(i int) string {
	if i >= len(a.words) {
		return ""
	}
	return a.words[i]
}

func (a *args) has(name string) bool {
	_, ok := a.named[name]
	delete(a.named, name)
	return ok
}

func (a *args) int(name string) int             { return value(a, name, strconv.Atoi) }
func (a *args) float(name string) float64       { return value(a, name, parseFloat) }
func (a *args) duration(n string) time.Duration { return value(a, n, time.ParseDuration) }

// instant is a duration from now on, or "now"; without a value it is the zero time.
func (a *args) instant(name string, now time.Time) time.Time {
	return value(a, name, func(text string) (time.Time, error) {
		if text == "now" {
			return now, nil
		}
		d, err := time.ParseDuration(text)
		return now.Add(d), err
	})
}

// value reads a value, which is not read again.
func value[T any](a *args, name string, parse func(string) (T, error)) (v T) {
	text, ok := a.named[name]
	if !ok {
		return v
	}
	delete(a.named, name)
	v, err := parse(text)
	if err != nil {
		a.err = err
	}
	return v
}

func parseFloat(text string) (float64, error) { return strconv.ParseFloat(text, 64) }

// wrong is the error of a value that could not be read, or of one that nobody has read.
func (a *args) wrong() error {
	if a.err == nil && len(a.named) > 0 {
		return fmt.Errorf("unknown values %v", slices.Sorted(maps.Keys(a.named)))
	}
	return a.err
}
