package worker

import (
	"fmt"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestBreakerSpreads: the more exchanges are shed, the later they come back, up to a minute; probes that fail bring
// them nearer again, and a response forgets them.
func TestBreakerSpreads(t *testing.T) {
	mean := func(n int) (sum time.Duration) {
		for range 1000 {
			d := comeBack(n)
			if d < minShed || d > maxShed {
				t.Fatalf("the %d-th comes back after %v", n, d)
			}
			sum += d / 1000
		}
		return sum
	}
	for n, want := range map[int]time.Duration{1: 1500, 200: 1500, 1000: 7500, 4000: 30_000, 6000: 45_000, 1 << 40: 45_000} {
		want *= time.Millisecond
		if got := mean(n); got < want*9/10 || got > want*11/10 {
			t.Errorf("the %d-th comes back after %v on average, want about %v", n, got, want)
		}
	}
	b, key := breaker{after: 1}, hostKey{"http", "dead.test", "80"}
	b.leave(pass{key: key}, silence)
	probe, _ := b.enter(key, "/", false)
	last := map[time.Duration]int{}
	for range 10_000 {
		_, in := b.enter(key, "/", false)
		last[in.Round(time.Second)]++
	}
	for second, n := range last {
		if n > 2000 {
			t.Errorf("%d of 10,000 come back in second %v", n, second)
		}
	}
	if len(last) < 50 {
		t.Errorf("10,000 come back in %d different seconds", len(last))
	}
	b.leave(probe, silence)
	if h := b.hosts[key]; h.shed != 5000 || h.probes != 0 || h.failures != 2 {
		t.Errorf("after a probe: %+v", h)
	}
	probe, _ = b.enter(key, "/", false)
	b.leave(probe, answer)
	if len(b.hosts) != 0 || b.tracked.Load() != 0 {
		t.Errorf("%d hosts are remembered", len(b.hosts))
	}
}

// TestBreakerForgets: what is remembered is bounded. Names that fail once push each other out, not one that fails always.
func TestBreakerForgets(t *testing.T) {
	b := breaker{after: 3}
	key := hostKey{"http", "dead.test", "80"}
	for range 3 {
		b.leave(pass{key: key}, silence)
	}
	probe, _ := b.enter(key, "/", false)
	for i := range 3 * maxHosts {
		b.leave(pass{key: hostKey{"http", fmt.Sprintf("made-up-%d.test", i), "80"}}, silence)
	}
	if len(b.hosts) != maxHosts || b.tracked.Load() != maxHosts {
		t.Errorf("%d hosts are remembered, want %d", len(b.hosts), maxHosts)
	}
	if _, in := b.enter(key, "/", false); in == 0 {
		t.Error("a host that is dead was forgotten for one that has failed once")
	}
	// When all have failed as often, some host must go. What was forgotten during its probe starts anew.
	for k := range b.hosts {
		b.hosts[k].failures = 3
	}
	delete(b.hosts, key)
	b.leave(probe, silence)
	if h := b.hosts[key]; h == nil || h.failures != 1 || h.probes != 0 {
		t.Errorf("after it was forgotten: %+v", h)
	}
	b = breaker{after: 1}
	b.leave(pass{key: hostKey{"http", strings.Repeat("x", maxHostName+1), "80"}}, silence)
	if len(b.hosts) != 0 || b.tracked.Load() != 0 {
		t.Error("a name that is too long is remembered")
	}
}

func TestHostOf(t *testing.T) {
	for target, want := range map[string]hostKey{
		"http://Example.COM/a?b":          {"http", "example.com", "80"},
		"HTTPS://user:pass@example.com":   {"https", "example.com", "443"},
		"https://example.com:8443/":       {"https", "example.com", "8443"},
		"http://[::1]/":                   {"http", "::1", "80"},
		"http://[FE80::1%25eth0]:8080/":   {"http", "fe80::1%eth0", "8080"},
		"http://127.0.0.1:80/#fragment":   {"http", "127.0.0.1", "80"},
		"http://example.com:80/":          {"http", "example.com", "80"},
		"http://BÜCHER.example/":          {"http", "bücher.example", "80"},
		"http://example.com.:80/":         {"http", "example.com.", "80"},
		"http://a.example.com:/":          {"http", "a.example.com", "80"},
		"https://user@[2001:db8::1]:1/x@": {"https", "2001:db8::1", "1"},
	} {
		u, err := url.Parse(target)
		if err != nil {
			t.Fatal(err)
		}
		if got := hostOf(u); got != want {
			t.Errorf("%s: got %v, want %v", target, got, want)
		}
	}
}

// TestBreakerAtOnce: under load never more than one exchange that began after the breaker opened is on its way, none is
// lost, and when the host answers again all goes through.
func TestBreakerAtOnce(t *testing.T) {
	var up atomic.Bool
	var inFlight, most atomic.Int64
	d := newBroken(5, func(*http.Request) (*http.Response, error) {
		n := inFlight.Add(1)
		defer inFlight.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		runtime.Gosched()
		if up.Load() {
			return responded(204)
		}
		return nil, errRefused
	})
	for range 5 {
		d.Deliver(t.Context(), Request{URL: dead})
	}
	most.Store(0)
	run := func() *sync.Map {
		kinds := new(sync.Map)
		var all sync.WaitGroup
		for range 32 {
			all.Go(func() {
				for range 200 {
					n, _ := kinds.LoadOrStore(d.Deliver(t.Context(), Request{URL: dead}).Kind, new(atomic.Int64))
					n.(*atomic.Int64).Add(1)
				}
			})
		}
		all.Wait()
		return kinds
	}
	kinds := run()
	if _, ok := kinds.Load(KindConnect); !ok || most.Load() != 1 {
		t.Errorf("%d probes at once, want 1; kinds: %v", most.Load(), kinds)
	}
	up.Store(true)
	for d.Deliver(t.Context(), Request{URL: dead}).Kind != "" {
	}
	kinds = run()
	if n, ok := kinds.Load(Kind("")); !ok || n.(*atomic.Int64).Load() != 32*200 || d.breaker.tracked.Load() != 0 {
		t.Errorf("the host answers, and not all goes through; %d hosts are remembered", d.breaker.tracked.Load())
	}
}

// BenchmarkBreaker is what the breaker adds to an exchange that succeeds: when no host is in trouble, and when another
// one is.
func BenchmarkBreaker(b *testing.B) {
	u, err := url.Parse("https://example.com/hook?a=b")
	if err != nil {
		b.Fatal(err)
	}
	for _, troubled := range []int{0, 1, maxHosts} {
		b.Run(fmt.Sprintf("%d troubled", troubled), func(b *testing.B) {
			br := breaker{after: defaultThreshold}
			for i := range troubled {
				br.leave(pass{key: hostKey{"http", fmt.Sprint(i), "80"}}, silence)
			}
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					p, _ := br.enter(hostOf(u), u.Path, false)
					br.leave(p, answer)
				}
			})
		})
	}
}
