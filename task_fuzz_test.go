package dispatch

import (
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/dispatchkit/dispatch/cluster"
)

// fuzzTask makes a task of what a fuzzer has; which fields it has, bits say.
func fuzzTask(queue, kind, url, name, value string, payload []byte, delay, timeout int64, has uint16) Task {
	t := Task{Queue: queue, Kind: kind, URL: url, Payload: payload, Delay: time.Duration(delay), Timeout: time.Duration(timeout)}
	if has&1 != 0 {
		t.Header = http.Header{name: {value}}
	}
	if has&2 != 0 {
		t.Metadata = map[string]string{name: value}
	}
	if has&4 != 0 {
		t.ID = TaskID(name)
	}
	if has&8 != 0 {
		t.Method = value
	}
	if has&16 != 0 {
		t.Retry = &RetryConfig{MaxAttempts: int(delay), MinBackoff: time.Duration(timeout), MaxBackoff: time.Duration(delay), Jitter: float64(int8(timeout)) / 100}
	}
	if has&32 != 0 {
		t.Requires = cluster.Resources{name: delay}
	}
	if has&64 != 0 {
		t.ScheduleTime = time.Unix(0, timeout)
	}
	if has&128 != 0 {
		t.Retention = time.Duration(timeout)
	}
	if has&256 != 0 {
		t.Unique = &Unique{Key: value, Window: time.Duration(delay)}
	}
	if has&512 != 0 {
		t.Secret = value
	}
	return t
}

// FuzzNormalizeTask checks that a task that passes is as it is when it is checked again, and within all limits, and that an
// error names a field of a task, in a text that fits a line of a log.
func FuzzNormalizeTask(f *testing.F) {
	f.Add("", "k", "", "", "", []byte("p"), int64(0), int64(0), uint16(0))
	f.Add("q", "", "http://a.example/", "X-A", "b", []byte(nil), int64(time.Hour), int64(time.Minute), uint16(1|2|4|128))
	f.Add("q", "", "http://a.example/", "cpu", "PUT", []byte("p"), int64(5), int64(time.Second+1), uint16(8|16|32))
	f.Add("q", "k", "", "X-Dispatch-A", "v", []byte(nil), int64(0), int64(-1), uint16(2))
	f.Add("q", "k", "", "n", "v", []byte(nil), int64(time.Second), int64(time.Second), uint16(64|256))
	f.Add("q", "", "http://a.example/", "n", "whsec_x", []byte(nil), int64(0), int64(0), uint16(512))
	f.Add("q", "k\x00", "", "n", "v", []byte(nil), int64(0), int64(999_999), uint16(128))
	now := start
	f.Fuzz(func(t *testing.T, queue, kind, url, name, value string, payload []byte, delay, timeout int64, has uint16) {
		given := fuzzTask(queue, kind, url, name, value, payload, delay, timeout, has)
		before := fuzzTask(queue, kind, url, name, value, payload, delay, timeout, has)
		task, err := given.normalize(now)
		if !reflect.DeepEqual(given, before) {
			t.Errorf("the caller's task was %+v and is %+v", before, given)
		}
		if err != nil {
			var bad *FieldError
			if !errors.As(err, &bad) || bad.Field != "Task" && !strings.HasPrefix(bad.Field, "Task.") || bad.Problem == "" {
				t.Fatalf("%+v: %v", given, err)
			}
			if len(err.Error()) > 2000 || strings.ContainsAny(err.Error(), "\n\r\x00") {
				t.Errorf("the error is %q", err)
			}
			return
		}
		again, err := task.normalize(now)
		if err != nil || !reflect.DeepEqual(again, task) {
			t.Errorf("%+v passes as %+v, which passes as %+v, %v", given, task, again, err)
		}
		switch {
		case task.Queue == "", (task.Kind == "") == (task.URL == ""), task.URL != "" && task.Method == "":
			t.Errorf("%+v is not complete", task)
		case task.Timeout < minTimeout, task.Timeout > maxTimeout, task.Timeout%time.Millisecond != 0, task.Delay < 0, task.Delay > maxSchedule,
			task.ScheduleTime.Sub(now) > maxSchedule, task.Retention > maxSchedule, task.Retention%time.Millisecond != 0,
			(task.Retention == 0) != (given.Retention == 0), task.size() > maxTaskBytes:
			t.Errorf("%+v passes as %+v", given, task)
		}
	})
}

// FuzzEntry checks that a cron entry that passes is as it is when it is checked again and has ticks, which rise and obey the
// zone, and that an error names the field.
func FuzzEntry(f *testing.F) {
	for _, seed := range [][3]string{{"a", "@daily", "Europe/Berlin"}, {"a b", "@daily", ""}, {"a", "30 2 * * *", "America/New_York"}, {"a", "0 0 31 2 *", "UTC"},
		{"a", "@every 90s", "Local"}, {"a", "* * * * *", "../etc/passwd"}, {"a", "* * * * *", "/etc/localtime"}, {"a", "", "\x00"}, {"a", "@daily", "\n"}, {"a", "5 * * * *", "utc"}} {
		f.Add(seed[0], seed[1], seed[2], "once", "k", int64(1772366400), uint16(0))
	}
	f.Add("a", "@hourly", "Asia/Tokyo", "all", "", int64(-62135596800), uint16(4|256))
	f.Fuzz(func(t *testing.T, name, spec, zone, misfire, kind string, unix int64, has uint16) {
		e := Entry{Name: name, Spec: spec, Zone: zone, Misfire: Misfire(misfire), Task: fuzzTask("q", kind, "", "id", "v", nil, 0, 0, has)}
		normal, err := e.normalize(start)
		if err != nil {
			var bad *FieldError
			if !errors.As(err, &bad) || !strings.HasPrefix(bad.Field, "Entry.") || bad.Problem == "" || strings.ContainsAny(err.Error(), "\n\x00") || len(err.Error()) > 2000 {
				t.Errorf("%+v: %q", e, err)
			}
			return
		}
		if again, err := normal.normalize(start); err != nil || !reflect.DeepEqual(again, normal) {
			t.Errorf("%+v passes as %+v, which passes as %+v, %v", e, normal, again, err)
		}
		after := time.Unix(unix%200_000_000_000, 0)
		ticks, err := normal.Ticks(after, 5)
		if err != nil {
			t.Fatal(err)
		}
		for _, tick := range ticks {
			if !tick.After(after) || tick.Nanosecond() != 0 || tick.Location() != time.UTC {
				t.Errorf("%q in %q: tick %v after %v", spec, zone, tick, after)
			}
			if id := tickID(name, tick); validateTaskID("Task.ID", id) != nil {
				t.Errorf("tick %v has the ID %q", tick, id)
			}
			after = tick
		}
	})
}
