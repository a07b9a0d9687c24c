package dispatch

import (
	"math"
	"slices"
	"testing"
	"time"
)

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func allSeconds(s ...float64) []time.Duration {
	out := make([]time.Duration, len(s))
	for i := range s {
		out[i] = seconds(s[i])
	}
	return out
}

// The sequences of spec/http-push.md, section 1.3.
func TestBackoffSequences(t *testing.T) {
	for _, c := range []struct {
		name      string
		low, top  float64
		doublings int
		want      []float64
	}{
		{"the example of the documentation", 10, 300, 3, []float64{10, 20, 40, 80, 160, 240, 300, 300, 300}},
		{"by equal steps from the start", 10, 200, -1, []float64{10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120, 130,
			140, 150, 160, 170, 180, 190, 200, 200, 200}},
		{"bounded after the doublings", 10, 200, 3, []float64{10, 20, 40, 80, 160, 200, 200}},
		{"the defaults of Cloud Tasks", .1, 3600, 16, []float64{.1, .2, .4, .8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4,
			204.8, 409.6, 819.2, 1638.4, 3276.8, 3600, 3600}},
		{"bounded while doubling", 1, 300, 16, []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300}},
		{"bounded at once", 1, 3, 16, []float64{1, 2, 3, 3, 3}},
		{"one doubling", 4, 60, 1, []float64{4, 8, 16, 24, 32, 40, 48, 56, 60, 60}},
		{"constant", 5, 5, 16, []float64{5, 5, 5, 5}},
	} {
		t.Run(c.name, func(t *testing.T) {
			rc := RetryConfig{MinBackoff: seconds(c.low), MaxBackoff: seconds(c.top), MaxDoublings: c.doublings}
			var got []time.Duration
			for n := range c.want {
				got = append(got, Backoff(rc, n+1))
			}
			if want := allSeconds(c.want...); !slices.Equal(got, want) {
				t.Errorf("Backoff gives\n%v, want\n%v", got, want)
			}
		})
	}
}

func TestBackoffSumOfDefaults(t *testing.T) {
	rc := RetryConfig{MinBackoff: 100 * time.Millisecond, MaxBackoff: time.Hour, MaxDoublings: 16}
	var sum time.Duration
	for n := 1; n < 100; n++ {
		sum += Backoff(rc, n)
	}
	if want := seconds(305353.5); sum != want {
		t.Errorf("100 attempts wait %v in all, want %v", sum, want)
	}
}

func TestBackoffEdges(t *testing.T) {
	for _, c := range []struct {
		name     string
		rc       RetryConfig
		attempts int
		want     time.Duration
	}{
		{"no attempt", RetryConfig{MinBackoff: time.Second}, 0, 0},
		{"fewer than none", RetryConfig{MinBackoff: time.Second}, -3, 0},
		{"MinBackoff 0 is none: nothing is defaulted", RetryConfig{MaxBackoff: time.Hour, MaxDoublings: 16}, 5, 0},
		{"MinBackoff -1 is none", RetryConfig{MinBackoff: -1, MaxBackoff: time.Hour, MaxDoublings: 16}, 5, 0},
		{"MaxDoublings 0 is none", RetryConfig{MinBackoff: time.Second}, 4, 4 * time.Second},
		{"MaxBackoff 0 is no bound", RetryConfig{MinBackoff: time.Hour, MaxDoublings: 10}, 11, 1024 * time.Hour},
		{"MaxBackoff -1 is no bound", RetryConfig{MinBackoff: time.Hour, MaxDoublings: 10, MaxBackoff: -1}, 11, 1024 * time.Hour},
		{"a million attempts", RetryConfig{MinBackoff: time.Second, MaxBackoff: time.Hour, MaxDoublings: 16}, 1e6, time.Hour},
		{"a million attempts without bound", RetryConfig{MinBackoff: time.Second, MaxDoublings: 64}, 1e6, math.MaxInt64},
		{"64 doublings", RetryConfig{MinBackoff: time.Second, MaxBackoff: maxSchedule, MaxDoublings: 64}, 65, maxSchedule},
		{"as many as there are", RetryConfig{MinBackoff: maxSchedule, MaxDoublings: math.MaxInt}, math.MaxInt, math.MaxInt64},
		{"one step below the overflow", RetryConfig{MinBackoff: 1, MaxDoublings: 64}, 63, 1 << 62},
		{"one step beyond it", RetryConfig{MinBackoff: 1, MaxDoublings: 64}, 64, math.MaxInt64},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Backoff(c.rc, c.attempts); got != c.want {
				t.Errorf("Backoff(%+v, %d) = %v, want %v", c.rc, c.attempts, got, c.want)
			}
		})
	}
}

// However many attempts and doublings, a wait is what the formula gives, or the bound that it comes to.
func TestBackoffSaturates(t *testing.T) {
	const most = time.Duration(math.MaxInt64)
	for _, c := range []struct {
		doublings int
		bound     time.Duration
		want      [7]time.Duration // after 1, 10, 100 … 10^6 attempts, from 1 s
	}{
		{0, 0, [7]time.Duration{seconds(1), seconds(10), seconds(100), seconds(1e3), seconds(1e4), seconds(1e5), seconds(1e6)}},
		{3, 0, [7]time.Duration{seconds(1), seconds(56), seconds(776), seconds(7976), seconds(79976), seconds(799976), seconds(7999976)}},
		{16, 0, [7]time.Duration{seconds(1), seconds(512), seconds(65536 * 84), seconds(65536 * 984), seconds(65536 * 9984),
			seconds(65536 * 99984), most}},
		{64, 0, [7]time.Duration{seconds(1), seconds(512), most, most, most, most, most}},
		{math.MaxInt, 0, [7]time.Duration{seconds(1), seconds(512), most, most, most, most, most}},
		{16, time.Hour, [7]time.Duration{seconds(1), seconds(512), time.Hour, time.Hour, time.Hour, time.Hour, time.Hour}},
		{64, time.Hour, [7]time.Duration{seconds(1), seconds(512), time.Hour, time.Hour, time.Hour, time.Hour, time.Hour}},
		{64, maxSchedule, [7]time.Duration{seconds(1), seconds(512), maxSchedule, maxSchedule, maxSchedule, maxSchedule, maxSchedule}},
	} {
		rc := RetryConfig{MinBackoff: time.Second, MaxBackoff: c.bound, MaxDoublings: c.doublings}
		attempts := 1
		for _, want := range c.want {
			if got := Backoff(rc, attempts); got != want {
				t.Errorf("%d doublings, bound %v: after %d attempts %v, want %v", c.doublings, c.bound, attempts, got, want)
			}
			attempts *= 10
		}
	}
}

// A wait is never negative, and never shorter than the one before.
func TestBackoffRises(t *testing.T) {
	for _, doublings := range []int{-1, 0, 1, 16, 64} {
		for _, bound := range []time.Duration{-1, 0, time.Minute, maxSchedule} {
			rc := RetryConfig{MinBackoff: 3 * time.Millisecond, MaxBackoff: bound, MaxDoublings: doublings}
			last := time.Duration(0)
			for n := 1; n < 3000; n++ {
				wait := Backoff(rc, n)
				if wait < last {
					t.Fatalf("%+v: attempt %d waits %v after %v", rc, n, wait, last)
				}
				last = wait
			}
		}
	}
}

// The traces of spec/http-push.md, section 1.4: when the attempts begin, in seconds, if each fails at once.
func TestExhaustedTraces(t *testing.T) {
	fast := RetryConfig{MinBackoff: time.Second, MaxBackoff: 8 * time.Second, MaxDoublings: 16}
	slow := RetryConfig{MinBackoff: 10 * time.Second, MaxBackoff: 300 * time.Second, MaxDoublings: 3}
	for _, c := range []struct {
		name     string
		rc       RetryConfig
		attempts int
		duration float64
		want     []float64
	}{
		{"attempts alone", fast, 3, 0, []float64{0, 1, 3}},
		{"both, the time is reached last", fast, 3, 20, []float64{0, 1, 3, 7, 15, 23}},
		{"time alone", fast, -1, 20, []float64{0, 1, 3, 7, 15, 23}},
		{"both, the attempts are reached last", fast, 10, 5, []float64{0, 1, 3, 7, 15, 23, 31, 39, 47, 55}},
		{"one attempt", fast, 1, 0, []float64{0}},
		{"one attempt and three seconds", fast, 1, 3, []float64{0, 1, 3}},
		{"both, doubled and stepped", slow, 5, 20, []float64{0, 10, 30, 70, 150}},
		{"attempts alone, the time is none", fast, 3, -1e-9, []float64{0, 1, 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.rc.MaxAttempts, c.rc.MaxRetryDuration = c.attempts, seconds(c.duration)
			now := start
			var got []time.Duration
			for n := 1; n <= 100; n++ {
				got = append(got, now.Sub(start))
				if Exhausted(c.rc, n, start, now) {
					break
				}
				now = now.Add(Backoff(c.rc, n))
			}
			if want := allSeconds(c.want...); !slices.Equal(got, want) {
				t.Errorf("attempts begin at\n%v, want\n%v", got, want)
			}
		})
	}
}

func TestExhaustedEdges(t *testing.T) {
	day := 24 * time.Hour
	for _, c := range []struct {
		name     string
		rc       RetryConfig
		attempts int
		first    time.Time
		after    time.Duration
		want     bool
	}{
		{"no limit", RetryConfig{MaxAttempts: -1, MaxRetryDuration: -1}, 1e6, start, 1000 * day, false},
		{"zero is no limit: nothing is defaulted", RetryConfig{}, 1e6, start, 1000 * day, false},
		{"before the last attempt", RetryConfig{MaxAttempts: 3}, 2, start, day, false},
		{"the last attempt", RetryConfig{MaxAttempts: 3}, 3, start, 0, true},
		{"beyond it, after the limit was lowered", RetryConfig{MaxAttempts: 3}, 9, start, 0, true},
		{"attempts alone need no first", RetryConfig{MaxAttempts: 3}, 3, time.Time{}, 0, true},
		{"just before the time", RetryConfig{MaxRetryDuration: day}, 9, start, day - 1, false},
		{"at the time", RetryConfig{MaxRetryDuration: day}, 1, start, day, true},
		{"first unknown", RetryConfig{MaxRetryDuration: day}, 9, time.Time{}, 1000 * day, false},
		{"both set, first unknown", RetryConfig{MaxAttempts: 3, MaxRetryDuration: day}, 9, time.Time{}, 1000 * day, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Exhausted(c.rc, c.attempts, c.first, start.Add(c.after)); got != c.want {
				t.Errorf("Exhausted = %v, want %v", got, c.want)
			}
		})
	}
}

// A task overrides its queue field by field, and a queue the defaults; 0 inherits and negative values are kept.
func TestRetryConfigMerge(t *testing.T) {
	queue := RetryConfig{MaxAttempts: 7, MaxRetryDuration: time.Hour, MinBackoff: 2 * time.Second, MaxBackoff: time.Minute, MaxDoublings: 3, Jitter: 0.25}
	if got, want := resolveRetry(nil, RetryConfig{}), (RetryConfig{MaxAttempts: 25, MaxRetryDuration: -1,
		MinBackoff: time.Second, MaxBackoff: time.Hour, MaxDoublings: 16, Jitter: -1}); got != want {
		t.Errorf("the defaults are %+v, want %+v", got, want)
	}
	if got := resolveRetry(&RetryConfig{}, queue); got != queue {
		t.Errorf("an empty override gives %+v, want the queue's %+v", got, queue)
	}
	for _, c := range []struct {
		name string
		own  RetryConfig
		want func(*RetryConfig)
	}{
		{"MaxAttempts", RetryConfig{MaxAttempts: 2}, func(rc *RetryConfig) { rc.MaxAttempts = 2 }},
		{"MaxAttempts none", RetryConfig{MaxAttempts: -1}, func(rc *RetryConfig) { rc.MaxAttempts = -1 }},
		{"MaxRetryDuration", RetryConfig{MaxRetryDuration: 5}, func(rc *RetryConfig) { rc.MaxRetryDuration = 5 }},
		{"MaxRetryDuration none", RetryConfig{MaxRetryDuration: -1}, func(rc *RetryConfig) { rc.MaxRetryDuration = -1 }},
		{"MinBackoff", RetryConfig{MinBackoff: 5}, func(rc *RetryConfig) { rc.MinBackoff = 5 }},
		{"MinBackoff none", RetryConfig{MinBackoff: -1}, func(rc *RetryConfig) { rc.MinBackoff = -1 }},
		{"MaxBackoff", RetryConfig{MaxBackoff: 5}, func(rc *RetryConfig) { rc.MaxBackoff = 5 }},
		{"MaxBackoff none", RetryConfig{MaxBackoff: -1}, func(rc *RetryConfig) { rc.MaxBackoff = -1 }},
		{"MaxDoublings", RetryConfig{MaxDoublings: 5}, func(rc *RetryConfig) { rc.MaxDoublings = 5 }},
		{"Jitter", RetryConfig{Jitter: 0.5}, func(rc *RetryConfig) { rc.Jitter = 0.5 }},
		{"Jitter none", RetryConfig{Jitter: -1}, func(rc *RetryConfig) { rc.Jitter = -1 }},
		{"MaxDoublings none", RetryConfig{MaxDoublings: -1}, func(rc *RetryConfig) { rc.MaxDoublings = -1 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := queue
			c.want(&want)
			if got := resolveRetry(&c.own, queue); got != want {
				t.Errorf("over the queue: %+v, want %+v", got, want)
			}
			want = defaultRetry
			c.want(&want)
			if got := resolveRetry(nil, c.own); got != want {
				t.Errorf("over the defaults: %+v, want %+v", got, want)
			}
		})
	}
}

func TestJitter(t *testing.T) {
	for _, c := range []struct {
		rc   RetryConfig
		luck float64
		want time.Duration
	}{
		{RetryConfig{}, 0.9, time.Minute},
		{RetryConfig{Jitter: -1}, 0.9, time.Minute},
		{RetryConfig{Jitter: 0.1}, 0.5, time.Minute},
		{RetryConfig{Jitter: 0.1}, 0, 54 * time.Second},
		{RetryConfig{Jitter: 0.1}, 1, 66 * time.Second},
		{RetryConfig{Jitter: 1}, 0, 0},
		{RetryConfig{Jitter: 1}, 1, 2 * time.Minute},
		{RetryConfig{Jitter: 1, MaxBackoff: time.Minute}, 1, time.Minute},
	} {
		if got := jittered(c.rc, time.Minute, c.luck); got < c.want-1 || got > c.want+1 {
			t.Errorf("%+v with luck %v: %v, want %v", c.rc, c.luck, got, c.want)
		}
	}
	if got := jittered(RetryConfig{Jitter: 1}, math.MaxInt64, 1); got != maxSchedule {
		t.Errorf("the longest wait becomes %v", got)
	}
}

func TestStorePauses(t *testing.T) {
	for range 200 {
		for n, top := range map[int]time.Duration{0: firstPause, 1: firstPause, 2: 2 * firstPause, 3: 4 * firstPause, 7: 64 * firstPause, 8: topPause, 1e6: topPause} {
			if got := backoffAfter(n); got < top/2 || got > top {
				t.Fatalf("pause after %d failures is %v, want %v to %v", n, got, top/2, top)
			}
		}
		if got := soonerThan(time.Minute); got < 48*time.Second || got > time.Minute {
			t.Fatalf("soonerThan(1m) = %v, want the last fifth", got)
		}
	}
}
