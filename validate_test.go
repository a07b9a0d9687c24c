package dispatch

import (
	"fmt"
	"math"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
)

func TestTaskLimits(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	web := func(change func(*Task)) Task {
		task := Task{URL: "http://example.com/"}
		change(&task)
		return task
	}
	fill := func(total int) Task { // a task of exactly total bytes
		task := Task{ID: "id", Queue: "q", Kind: "k", Metadata: map[string]string{"key": "value"}}
		task.Payload = make([]byte, total-len("idqkkeyvalue"))
		return task
	}
	for _, c := range []struct {
		name  string
		task  Task
		field string // "" is valid
	}{
		{"kind", Task{Kind: "k"}, ""},
		{"neither kind nor URL", Task{}, "Task"},
		{"both", Task{Kind: "k", URL: "http://example.com/"}, "Task"},

		{"queue of one character", Task{Kind: "k", Queue: "0"}, ""},
		{"queue of 100 characters", Task{Kind: "k", Queue: long(100)}, ""},
		{"queue of 101 characters", Task{Kind: "k", Queue: long(101)}, "Task.Queue"},
		{"queue with all characters", Task{Kind: "k", Queue: "Az09._-"}, ""},
		{"queue that begins with a dot", Task{Kind: "k", Queue: ".a"}, "Task.Queue"},
		{"queue that begins with a dash", Task{Kind: "k", Queue: "-a"}, "Task.Queue"},
		{"queue with a brace", Task{Kind: "k", Queue: "a}b"}, "Task.Queue"},
		{"queue named ~", Task{Kind: "k", Queue: "~"}, "Task.Queue"},
		{"queue with a newline at its end", Task{Kind: "k", Queue: "a\n"}, "Task.Queue"},
		{"queue that is not ASCII", Task{Kind: "k", Queue: "ä"}, "Task.Queue"},

		{"ID of 500 characters", Task{Kind: "k", ID: TaskID(long(500))}, ""},
		{"ID of 501 characters", Task{Kind: "k", ID: TaskID(long(501))}, "Task.ID"},
		{"ID with all characters", Task{Kind: "k", ID: "Az09_-"}, ""},
		{"ID with a dot", Task{Kind: "k", ID: "a.b"}, "Task.ID"},
		{"ID with a space", Task{Kind: "k", ID: "a b"}, "Task.ID"},
		{"ID with a newline at its end", Task{Kind: "k", ID: "a\n"}, "Task.ID"},

		{"kind of 200 characters", Task{Kind: long(200)}, ""},
		{"kind of 201 characters", Task{Kind: long(201)}, "Task.Kind"},
		{"kind that is not ASCII", Task{Kind: "käse:größe/1"}, ""},
		{"kind that is not UTF-8", Task{Kind: "\xff"}, "Task.Kind"},
		{"kind with a control character", Task{Kind: "a\x00"}, "Task.Kind"},
		{"kind with DEL", Task{Kind: "a\x7f"}, "Task.Kind"},
		{"kind with a method", Task{Kind: "k", Method: "POST"}, "Task"},
		{"kind with a header", Task{Kind: "k", Header: http.Header{"A": {"b"}}}, "Task"},
		{"kind with an empty header", Task{Kind: "k", Header: http.Header{}}, ""},

		{"method in lower case", web(func(t *Task) { t.Method = "post" }), "Task.Method"},
		{"method CONNECT", web(func(t *Task) { t.Method = "CONNECT" }), "Task.Method"},
		{"method with a newline", web(func(t *Task) { t.Method = "GET\r\nX: y" }), "Task.Method"},

		{"delay 0", Task{Kind: "k", Delay: 0}, ""},
		{"delay below 0", Task{Kind: "k", Delay: -1}, "Task.Delay"},
		{"longest delay", Task{Kind: "k", Delay: maxSchedule}, ""},
		{"longer delay", Task{Kind: "k", Delay: maxSchedule + 1}, "Task.Delay"},
		{"schedule time past", Task{Kind: "k", ScheduleTime: start.Add(-time.Hour)}, ""},
		{"schedule time before 1970", Task{Kind: "k", ScheduleTime: time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC)}, ""},
		{"latest schedule time", Task{Kind: "k", ScheduleTime: start.Add(maxSchedule)}, ""},
		{"later schedule time", Task{Kind: "k", ScheduleTime: start.Add(maxSchedule + 1)}, "Task.ScheduleTime"},
		{"schedule time in the year 9999", Task{Kind: "k", ScheduleTime: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}, "Task.ScheduleTime"},
		{"delay and schedule time", Task{Kind: "k", Delay: 1, ScheduleTime: start}, "Task"},

		{"shortest timeout", Task{Kind: "k", Timeout: time.Second}, ""},
		{"shorter timeout", Task{Kind: "k", Timeout: time.Second - 1}, "Task.Timeout"},
		{"timeout below 0", Task{Kind: "k", Timeout: -1}, "Task.Timeout"},
		{"longest timeout", Task{Kind: "k", Timeout: 24 * time.Hour}, ""},
		{"longer timeout", Task{Kind: "k", Timeout: 24*time.Hour + 1}, "Task.Timeout"},

		{"retention below 0", Task{Kind: "k", Retention: math.MinInt64}, ""},
		{"longest retention", Task{Kind: "k", Retention: maxSchedule}, ""},
		{"longer retention", Task{Kind: "k", Retention: maxSchedule + 1}, "Task.Retention"},

		{"retry", Task{Kind: "k", Retry: &RetryConfig{MaxAttempts: 1}}, ""},
		{"bad retry", Task{Kind: "k", Retry: &RetryConfig{MaxAttempts: -2}}, "Task.Retry.MaxAttempts"},

		{"1 MiB", fill(1 << 20), ""},
		{"1 MiB and 1", fill(1<<20 + 1), "Task"},
		{"long metadata", Task{Kind: "k", Metadata: map[string]string{"a": long(1 << 20)}}, "Task"},
		{"long metadata key", Task{Kind: "k", Metadata: map[string]string{long(1 << 20): ""}}, "Task"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := c.task.normalize(start)
			if c.field != "" {
				requireField(t, err, c.field)
				if len(err.Error()) > 400 {
					t.Errorf("the error has %d bytes", len(err.Error()))
				}
			} else if err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestTaskPayloadGoesWithItsMethod(t *testing.T) {
	for method, body := range map[string]bool{"": true, "POST": true, "PUT": true, "PATCH": true, "GET": false, "HEAD": false, "DELETE": false, "OPTIONS": false} {
		for _, payload := range [][]byte{nil, {}, []byte("secret")} {
			_, err := Task{URL: "http://example.com/", Method: method, Payload: payload}.normalize(start)
			if body || len(payload) == 0 {
				if err != nil {
					t.Errorf("%q with %d bytes: %v", method, len(payload), err)
				}
				continue
			}
			requireField(t, err, "Task.Payload")
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("the error quotes the payload: %v", err)
			}
		}
	}
}

func TestTaskDefaults(t *testing.T) {
	got, err := Task{URL: "http://example.com", Timeout: 1500*time.Millisecond + 700*time.Microsecond}.normalize(start)
	if err != nil {
		t.Fatal(err)
	}
	if got.Queue != DefaultQueue || got.Method != "POST" || got.Timeout != 1500*time.Millisecond {
		t.Errorf("normalized to queue %q, method %q, timeout %v", got.Queue, got.Method, got.Timeout)
	}
	got, err = Task{Kind: "k"}.normalize(start)
	if err != nil || got.Method != "" || got.Timeout != 10*time.Minute || got.ID != "" {
		t.Errorf("normalized to %+v, %v", got, err)
	}
	got, err = Task{Kind: "k", ScheduleTime: time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC)}.normalize(start)
	if err != nil || got.ScheduleTime.UnixMilli() != 0 {
		t.Errorf("an ancient schedule time becomes %v, %v", got.ScheduleTime, err)
	}
}

// Any retention keeps its meaning when it is cut to milliseconds.
func TestRetentionInMilliseconds(t *testing.T) {
	for retention, want := range map[time.Duration]time.Duration{
		0: 0, time.Hour: time.Hour, time.Millisecond: time.Millisecond, 1999 * time.Microsecond: time.Millisecond,
		1: -time.Millisecond, -1: -time.Millisecond, -time.Hour: -time.Millisecond, math.MinInt64: -time.Millisecond,
	} {
		if got, err := (Task{Kind: "k", Retention: retention}).normalize(start); err != nil || got.Retention != want {
			t.Errorf("%v becomes %v, want %v; %v", retention, got.Retention, want, err)
		}
	}
}

func TestNewTask(t *testing.T) {
	got, err := NewTask("mail", map[string]int{"a": 1})
	if err != nil || got.Kind != "mail" || string(got.Payload) != `{"a":1}` {
		t.Errorf("NewTask gives %+v, %v", got, err)
	}
	if _, err := NewTask("mail", make(chan int)); err == nil || !strings.Contains(err.Error(), "mail") {
		t.Errorf("NewTask of a channel gives the error %v", err)
	}
}

func TestQueueLimits(t *testing.T) {
	for _, c := range []struct {
		name  string
		queue Queue
		field string
	}{
		{"nothing set", Queue{}, ""},
		{"rate unlimited", Queue{Rate: -1}, ""},
		{"lowest rate", Queue{Rate: 0.0001}, ""},
		{"lower rate", Queue{Rate: 0.00009}, "Queue.Rate"},
		{"smallest number", Queue{Rate: math.SmallestNonzeroFloat64}, "Queue.Rate"},
		{"negative rate", Queue{Rate: -0.5}, "Queue.Rate"},
		{"rate -2", Queue{Rate: -2}, "Queue.Rate"},
		{"highest rate", Queue{Rate: 1e6}, ""},
		{"higher rate", Queue{Rate: 1000001}, "Queue.Rate"},
		{"infinite rate", Queue{Rate: math.Inf(1)}, "Queue.Rate"},
		{"rate NaN", Queue{Rate: math.NaN()}, "Queue.Rate"},
		{"largest burst", Queue{Burst: 1e6}, ""},
		{"larger burst", Queue{Burst: 1e6 + 1}, "Queue.Burst"},
		{"negative burst", Queue{Burst: -1}, "Queue.Burst"},
		{"concurrency unlimited", Queue{MaxConcurrent: -1}, ""},
		{"concurrency -2", Queue{MaxConcurrent: -2}, "Queue.MaxConcurrent"},
		{"most concurrency", Queue{MaxConcurrent: 1e6}, ""},
		{"more concurrency", Queue{MaxConcurrent: 1e6 + 1}, "Queue.MaxConcurrent"},
		{"largest weight", Queue{Weight: 1000}, ""},
		{"larger weight", Queue{Weight: 1001}, "Queue.Weight"},
		{"negative weight", Queue{Weight: -1}, "Queue.Weight"},
		{"attempts unlimited", Queue{Retry: RetryConfig{MaxAttempts: -1}}, ""},
		{"attempts -2", Queue{Retry: RetryConfig{MaxAttempts: -2}}, "Queue.Retry.MaxAttempts"},
		{"most attempts", Queue{Retry: RetryConfig{MaxAttempts: 1e6}}, ""},
		{"more attempts", Queue{Retry: RetryConfig{MaxAttempts: 1e6 + 1}}, "Queue.Retry.MaxAttempts"},
		{"no doublings", Queue{Retry: RetryConfig{MaxDoublings: -1}}, ""},
		{"doublings -2", Queue{Retry: RetryConfig{MaxDoublings: -2}}, "Queue.Retry.MaxDoublings"},
		{"most doublings", Queue{Retry: RetryConfig{MaxDoublings: 64}}, ""},
		{"more doublings", Queue{Retry: RetryConfig{MaxDoublings: 65}}, "Queue.Retry.MaxDoublings"},
		{"longest backoff", Queue{Retry: RetryConfig{MinBackoff: maxSchedule, MaxBackoff: maxSchedule}}, ""},
		{"longer backoff", Queue{Retry: RetryConfig{MinBackoff: maxSchedule + 1}}, "Queue.Retry.MinBackoff"},
		{"longer bound", Queue{Retry: RetryConfig{MaxBackoff: maxSchedule + 1}}, "Queue.Retry.MaxBackoff"},
		{"backoff above its bound", Queue{Retry: RetryConfig{MinBackoff: 2, MaxBackoff: 1}}, "Queue.Retry.MinBackoff"},
		{"backoff without bound", Queue{Retry: RetryConfig{MinBackoff: time.Hour, MaxBackoff: -1}}, ""},
		{"jitter -1", Queue{Retry: RetryConfig{Jitter: -1}}, ""},
		{"jitter -0.5", Queue{Retry: RetryConfig{Jitter: -0.5}}, "Queue.Retry.Jitter"},
		{"most jitter", Queue{Retry: RetryConfig{Jitter: 1}}, ""},
		{"more jitter", Queue{Retry: RetryConfig{Jitter: 1.01}}, "Queue.Retry.Jitter"},
		{"jitter that is no number", Queue{Retry: RetryConfig{Jitter: math.NaN()}}, "Queue.Retry.Jitter"},
		{"everything none", Queue{Retry: RetryConfig{-1, -1, -1, -1, -1, -1}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.queue.Name = "q"
			if err := c.queue.validate(); c.field != "" {
				requireField(t, err, c.field)
			} else if err != nil {
				t.Fatal(err)
			}
		})
	}
	for _, name := range []string{"", "~", "a/b", strings.Repeat("x", 101)} {
		requireField(t, Queue{Name: name}.validate(), "Queue.Name")
	}
}

func TestEffectiveBurst(t *testing.T) {
	for _, c := range []struct {
		rate  float64
		burst int
		want  int
	}{
		{0, 0, 10}, {1, 0, 10}, {50, 0, 10}, {50.5, 0, 11}, {51, 0, 11}, {55, 0, 11}, {500, 0, 100}, {2500, 0, 500},
		{1e6, 0, 500}, {0.0001, 0, 10}, {500, 1, 1}, {1, 700, 700},
	} {
		if got := (Queue{Rate: c.rate, Burst: c.burst}).EffectiveBurst(); got != c.want {
			t.Errorf("rate %v and burst %d give %d, want %d", c.rate, c.burst, got, c.want)
		}
	}
}

func TestOptionsLimits(t *testing.T) {
	type limit struct {
		field    string
		low, top time.Duration
		set      func(*Options, time.Duration)
	}
	for _, l := range []limit{
		{"CleanupInterval", 100 * time.Millisecond, 24 * time.Hour, func(o *Options, d time.Duration) { o.CleanupInterval = d }},
		{"DrainTimeout", time.Millisecond, 24 * time.Hour, func(o *Options, d time.Duration) { o.DrainTimeout = d }},
		{"LeaseGrace", 100 * time.Millisecond, time.Hour, func(o *Options, d time.Duration) { o.LeaseGrace = d }},
		{"ReconcileInterval", 10 * time.Millisecond, time.Hour, func(o *Options, d time.Duration) { o.ReconcileInterval = d }},
		{"SweepInterval", 10 * time.Millisecond, time.Hour, func(o *Options, d time.Duration) { o.SweepInterval = d }},
		{"RetentionSucceeded", 0, maxSchedule, func(o *Options, d time.Duration) { o.RetentionSucceeded = d }},
		{"RetentionFailed", math.MinInt64 + 1, maxSchedule, func(o *Options, d time.Duration) { o.RetentionFailed = d }},
		{"DedupWindow", math.MinInt64 + 1, maxSchedule, func(o *Options, d time.Duration) { o.DedupWindow = d }},
		{"BreakerThreshold", math.MinInt64 + 1, 1e6, func(o *Options, d time.Duration) { o.BreakerThreshold = int(d) }},
		{"GlobalConcurrency", 1, 1e6, func(o *Options, d time.Duration) { o.GlobalConcurrency = int(d) }},
		{"PerQueueClaimCap", 1, 150, func(o *Options, d time.Duration) { o.PerQueueClaimCap = int(d) }},
	} {
		t.Run(l.field, func(t *testing.T) {
			for _, v := range []time.Duration{0, l.low, l.top} {
				var o Options
				l.set(&o, v)
				if err := o.withDefaults().validate(); err != nil {
					t.Errorf("%d is refused: %v", v, err)
				}
			}
			for _, v := range []time.Duration{l.low - 1, l.top + 1} {
				if v == 0 || v == math.MinInt64 {
					continue // the default, or no duration below it
				}
				var o Options
				l.set(&o, v)
				requireField(t, o.withDefaults().validate(), "Options."+l.field)
			}
		})
	}
	t.Run("Queues", func(t *testing.T) {
		if err := (Options{Queues: []string{"a", "b.c-d_e"}}).withDefaults().validate(); err != nil {
			t.Error(err)
		}
		for _, name := range []string{"", "~", "a b"} {
			requireField(t, (Options{Queues: []string{"a", name}}).withDefaults().validate(), "Options.Queues")
		}
	})
}

func TestOptionsDefaults(t *testing.T) {
	o := Options{}.withDefaults()
	got := fmt.Sprint(o.GlobalConcurrency, o.PerQueueClaimCap, o.ReconcileInterval, o.SweepInterval, o.CleanupInterval,
		o.LeaseGrace, o.DrainTimeout, o.RetentionSucceeded, o.RetentionFailed, o.DedupWindow)
	if want := "64 100 5s 5s 1m0s 10s 25s 0s 168h0m0s 1h0m0s"; got != want {
		t.Errorf("defaults are %s, want %s", got, want)
	}
	if o.Clock == nil || o.Logger == nil || o.Observer == nil {
		t.Error("Clock, Logger or Observer is nil")
	}
	clock := clockwork.NewFakeClock()
	if o = (Options{Clock: clock, GlobalConcurrency: 3}).withDefaults(); o.Clock != clock || o.GlobalConcurrency != 3 {
		t.Error("a default replaces what was set")
	}
}

func TestNewWithoutStore(t *testing.T) {
	_, err := New(nil, Options{})
	requireField(t, err, "Store")
	_, err = NewClient(nil, ClientOptions{})
	requireField(t, err, "Store")
}

// What is matched by hand is matched as the patterns say that the messages name.
func TestNamePatterns(t *testing.T) {
	texts := []string{"", "~", "a", "A9", "-a", "_a", ".a", "a.b-c_d", "a/b", "a b", "a\n", "é", "a\x00", "[", "`", "{", "@", "a:b"}
	for _, n := range []int{99, 100, 101, 500, 501} {
		texts = append(texts, strings.Repeat("x", n))
	}
	for _, tc := range []struct {
		pattern string
		check   func(text string) error
	}{
		{queueNamePattern, func(text string) error { return validateQueueName("f", text) }},
		{taskIDPattern, func(text string) error { return validateTaskID("f", TaskID(text)) }},
		{secretNamePattern, func(text string) error { return validateSecretName("f", text) }},
	} {
		pattern := regexp.MustCompile(tc.pattern)
		for _, text := range texts {
			if err := tc.check(text); (err == nil) != pattern.MatchString(text) {
				t.Errorf("%q against %s: %v", text, tc.pattern, err)
			}
		}
	}
}
