package worker

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// transport is a network that does to requests what a test says.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

var (
	errRefused = &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	errNoName  = &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", IsNotFound: true}}
)

func responded(status int) (*http.Response, error) {
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(""))}, nil
}

func newBroken(after int, f transport) *Deliverer {
	return NewDeliverer(Options{Client: &http.Client{Transport: f}, BreakerThreshold: after})
}

// exchange is one that has been sent and waits for its end.
type exchange struct {
	end    chan<- error // nil is a response with status 500
	result <-chan Result
}

// scripted is a Deliverer whose exchanges end when the test says so.
type scripted struct {
	t       *testing.T
	d       *Deliverer
	arrived chan chan error
}

func newScripted(t *testing.T, after int) *scripted {
	s := &scripted{t: t, arrived: make(chan chan error)}
	s.d = newBroken(after, func(req *http.Request) (*http.Response, error) {
		end := make(chan error)
		s.arrived <- end
		select {
		case err := <-end:
			if err != nil {
				return nil, err
			}
			return responded(500)
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
	})
	return s
}

// begin starts an exchange that must be sent.
func (s *scripted) begin(ctx context.Context, target string) exchange {
	s.t.Helper()
	result := make(chan Result, 1)
	go func() { result <- s.d.Deliver(ctx, Request{URL: target}) }()
	select {
	case end := <-s.arrived:
		return exchange{end, result}
	case r := <-result:
		s.t.Fatalf("nothing was sent to %s: %+v", target, r)
	case <-time.After(patience):
		s.t.Fatalf("nothing was sent to %s", target)
	}
	panic("unreachable")
}

// end lets an exchange end and demands a kind.
func (s *scripted) end(e exchange, err error, want Kind) {
	s.t.Helper()
	e.end <- err
	if got := await(s.t, e.result, "result"); got.Kind != want {
		s.t.Errorf("got %+v, want %q", got, want)
	}
}

func (s *scripted) fail(target string, times int) {
	s.t.Helper()
	for range times {
		s.end(s.begin(s.t.Context(), target), errRefused, KindConnect)
	}
}

// shed demands that an exchange is not sent.
func (s *scripted) shed(target string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	result := make(chan Result, 1)
	go func() { result <- s.d.Deliver(ctx, Request{URL: target}) }()
	var got Result
	select {
	case <-s.arrived:
		s.t.Fatalf("a request was sent to %s", target)
	case got = <-result:
	}
	if got.Kind != KindShed || got.Status != 0 || got.Err == nil || got.RetryIn < minShed || got.RetryIn > maxShed {
		s.t.Errorf("got %+v, want %q", got, KindShed)
	}
}

const dead = "http://dead.test/"

// TestBreaker: ten failures in a row open the breaker; then there is one probe at a time, and a response closes it.
func TestBreaker(t *testing.T) {
	s := newScripted(t, 0)
	s.fail(dead, 9)
	s.end(s.begin(t.Context(), dead), nil, KindNon2xx) // any response counts
	s.fail(dead, 9)
	early := []exchange{s.begin(t.Context(), dead), s.begin(t.Context(), dead), s.begin(t.Context(), dead)}
	s.end(early[0], errNoName, KindDNS) // the tenth
	for range 3 {                       // a probe that fails makes room for the next one
		probe := s.begin(t.Context(), dead)
		s.shed(dead)
		s.shed("HTTP://Dead.Test:80/other?path")
		for _, other := range []string{"https://dead.test/", "http://dead.test:81/", "http://other.test/"} {
			s.end(s.begin(t.Context(), other), errRefused, KindConnect)
		}
		s.end(probe, errRefused, KindConnect)
	}
	s.end(early[1], errRefused, KindConnect) // what began before runs on, and is no probe
	probe := s.begin(t.Context(), dead)
	s.shed(dead)
	s.end(early[2], nil, KindNon2xx) // a response to any of them is one
	s.fail(dead, 9)
	s.end(probe, errRefused, KindConnect) // and then a probe is an exchange like any other: this is the tenth
	probe = s.begin(t.Context(), dead)
	s.shed(dead)
	s.end(probe, nil, KindNon2xx)
	if n := len(s.d.breaker.hosts); n != 3 {
		t.Errorf("%d hosts are remembered, want the three others, which have not answered", n)
	}
}

// TestBreakerSlowProbe: a probe that hangs has the say for ten seconds, with each that is out for twice the time, and for
// another path for half of it.
func TestBreakerSlowProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScripted(t, 3)
		s.fail(dead, 3)
		var out []exchange
		for turn := slowProbe; turn < time.Hour; turn *= 2 {
			out = append(out, s.begin(t.Context(), dead+"?n=1"))
			time.Sleep(turn - time.Millisecond)
			s.shed(dead + "?n=2")
			time.Sleep(2 * time.Millisecond)
		}
		if n := len(out); n != 9 {
			t.Errorf("%d probes are out after an hour", n)
		}
		s.end(out[0], errRefused, KindConnect) // of those that are out, only the youngest matters
		turn := slowProbe << (len(out) - 1)
		young := s.begin(t.Context(), dead)
		time.Sleep(turn/2 - time.Millisecond)
		s.shed(dead + "other")
		time.Sleep(2 * time.Millisecond)
		s.shed(dead)
		s.end(young, errRefused, KindConnect) // its place is free at once
		young = s.begin(t.Context(), dead)
		s.shed(dead + "other")
		time.Sleep(turn/2 + time.Millisecond)
		s.shed(dead)
		s.end(s.begin(t.Context(), dead+"other"), nil, KindNon2xx) // answers, and all may be sent
		s.fail(dead, 2)
		for _, e := range append(out[1:], young) { // these began before it answered, and still hold their own
			s.end(e, nil, KindNon2xx)
		}
		if n := len(s.d.breaker.hosts); n != 0 {
			t.Errorf("%d hosts are remembered", n)
		}
	})
}

// TestBreakerInsist: who insists is sent, and takes nobody's turn.
func TestBreakerInsist(t *testing.T) {
	b, key := breaker{after: 1}, hostKey{"http", "dead.test", "80"}
	b.leave(pass{key: key}, silence)
	for range 5 {
		if p, in := b.enter(key, "/", true); in != 0 || p.probe != nil {
			t.Errorf("got %+v, %v", p, in)
		}
	}
	probe, in := b.enter(key, "/", false)
	if probe.probe == nil || in != 0 {
		t.Errorf("got %+v, %v", probe, in)
	}
	insists, _ := b.enter(key, "/", true)
	b.leave(insists, silence)
	if _, in := b.enter(key, "/", false); in == 0 {
		t.Error("the end of one that insists let another one in")
	}
	insists, _ = b.enter(key, "/", true)
	b.leave(insists, answer)
	b.leave(probe, nothing)
	if len(b.hosts) != 0 {
		t.Error("the answer to one that insists does not count")
	}
}

// TestBreakerVerdicts: what counts against a host, what for it, and what says nothing.
func TestBreakerVerdicts(t *testing.T) {
	lost := errors.New("taken away")
	timeout := func() (context.Context, context.CancelFunc) { return context.WithTimeout(t.Context(), time.Nanosecond) }
	cancelled := func() (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(lost)
		return ctx, func() {}
	}
	plain := func() (context.Context, context.CancelFunc) { return t.Context(), func() {} }
	for _, tt := range []struct {
		name string
		ctx  func() (context.Context, context.CancelFunc)
		err  error
		kind Kind
		open bool
	}{
		{"connect", plain, errRefused, KindConnect, true},
		{"dns", plain, errNoName, KindDNS, true},
		{"tls", plain, tls.RecordHeaderError{Msg: "no TLS"}, KindTLS, true},
		{"timeout", timeout, nil, KindTimeout, true},
		{"cancelled", cancelled, nil, KindCancelled, false},
		{"refused by the guard", plain, &EgressError{Rule: "mine"}, KindConfig, false},
		{"status 500", plain, nil, KindNon2xx, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newBroken(2, func(req *http.Request) (*http.Response, error) {
				if tt.kind == KindTimeout || tt.kind == KindCancelled {
					<-req.Context().Done()
					return nil, req.Context().Err()
				}
				if tt.err != nil {
					return nil, tt.err
				}
				return responded(500)
			})
			key := hostKey{"http", "dead.test", "80"}
			for range 5 { // once open, each is a probe
				ctx, cancel := tt.ctx()
				if got := d.Deliver(ctx, Request{URL: dead}); got.Kind != tt.kind {
					t.Errorf("got %+v, want %q", got, tt.kind)
				}
				cancel()
			}
			p, _ := d.breaker.enter(key, "/", false)
			if open := p.probe != nil; open != tt.open {
				t.Errorf("open: %v, want %v", open, tt.open)
			}
		})
	}
}

// TestBreakerProbeIsGivenUp: however an exchange ends, its place is free for the next probe.
func TestBreakerProbeIsGivenUp(t *testing.T) {
	lost := errors.New("taken away")
	for name, end := range map[string]func() error{
		"panic":   func() error { panic("boom") },
		"Goexit":  func() error { runtime.Goexit(); return nil },
		"refused": func() error { return &EgressError{Rule: "mine"} },
	} {
		t.Run(name, func(t *testing.T) {
			var broken atomic.Bool
			d := newBroken(1, func(*http.Request) (*http.Response, error) {
				if broken.Load() {
					return nil, end()
				}
				return nil, errRefused
			})
			d.Deliver(t.Context(), Request{URL: dead})
			broken.Store(true)
			for range 3 {
				var all sync.WaitGroup
				all.Go(func() {
					defer func() { recover() }()
					if got := d.Deliver(t.Context(), Request{URL: dead}); got.Kind == KindShed {
						t.Error("the place of a probe was not given back")
					}
				})
				all.Wait()
			}
			broken.Store(false)
			if got := d.Deliver(t.Context(), Request{URL: dead}); got.Kind != KindConnect {
				t.Errorf("got %+v, want a probe", got)
			}
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		s := newScripted(t, 3)
		s.fail(dead, 3)
		for range 3 {
			ctx, cancel := context.WithCancelCause(t.Context())
			probe := s.begin(ctx, dead)
			s.shed(dead)
			cancel(lost)
			if got := await(t, probe.result, "result"); got.Kind != KindCancelled {
				t.Errorf("got %+v, want %q", got, KindCancelled)
			}
		}
	})
}

// TestBreakerAnswersAtTheHeader: a host has answered when the header of its response is there, whatever its body does.
func TestBreakerAnswersAtTheHeader(t *testing.T) {
	body, more := io.Pipe()
	var answers atomic.Bool
	d := newBroken(1, func(*http.Request) (*http.Response, error) {
		if !answers.Load() {
			return nil, errRefused
		}
		return &http.Response{StatusCode: 200, Body: body}, nil
	})
	d.Deliver(t.Context(), Request{URL: dead})
	answers.Store(true)
	result := make(chan Result, 1)
	go func() { result <- d.Deliver(t.Context(), Request{URL: dead}) }()
	more.Write([]byte("a")) // is being read
	answers.Store(false)
	if got := d.Deliver(t.Context(), Request{URL: dead}); got.Kind != KindConnect {
		t.Errorf("got %+v while the body of a response is on its way", got)
	}
	more.Close()
	if got := await(t, result, "result"); got.Kind != "" || got.Snippet != "a" {
		t.Errorf("got %+v", got)
	}
}

func TestBreakerOff(t *testing.T) {
	s := newScripted(t, -1)
	s.fail(dead, 100)
	a, b := s.begin(t.Context(), dead), s.begin(t.Context(), dead)
	s.end(a, nil, KindNon2xx)
	s.end(b, errRefused, KindConnect)
	if n := s.d.breaker.tracked.Load(); n != 0 {
		t.Errorf("%d hosts are remembered for nothing", n)
	}
}
