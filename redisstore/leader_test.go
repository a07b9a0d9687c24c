package redisstore

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/redis/go-redis/v9"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/cluster"
)

func as(t testing.TB, id cluster.WorkerID) context.Context {
	return cluster.WithWorkerID(t.Context(), id)
}

// elect makes an elector the leader.
func elect(t testing.TB, e *Elector, id cluster.WorkerID) <-chan struct{} {
	t.Helper()
	ctx, cancel := context.WithTimeout(as(t, id), 20*time.Second)
	defer cancel()
	lost, err := e.Acquire(ctx)
	ok(t, err)
	return lost
}

func leaderIs(t testing.TB, s *testStore, want cluster.WorkerID) {
	t.Helper()
	w, err := s.GetLeader(t.Context())
	ok(t, err)
	if w == nil {
		w = new(cluster.Worker)
	}
	if w.ID != want {
		t.Errorf("%q leads, want %q", w.ID, want)
	}
}

func stillHeld(t testing.TB, lost <-chan struct{}) {
	t.Helper()
	select {
	case <-lost:
		t.Error("the leadership is lost")
	default:
	}
}

// eventually waits until something is so.
func eventually(t testing.TB, what string, so func() bool) {
	t.Helper()
	for range 2000 {
		if so() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("%s does not come", what)
}

func TestElectorIsHeardWhenItResigns(t *testing.T) {
	onTwo(t, func(t *testing.T, b backend) {
		s, f := flaky(t, b)
		listen(t, s.Store)
		first := s.Elector(ElectorOptions{})
		second := s.Elector(ElectorOptions{Retry: time.Hour})
		lost := elect(t, first, alice)
		leaderIs(t, s, alice)
		elected := make(chan (<-chan struct{}), 1)
		go func() {
			lost, err := second.Acquire(as(t, bob))
			if err != nil {
				t.Error(err)
			}
			elected <- lost
		}()
		eventually(t, "the other's try", func() bool { return f.sent("set") >= 2 && f.sent("evalsha") >= 1 })
		stillHeld(t, lost)
		start := time.Now()
		first.Release()
		receive(t, lost)
		lost = receive(t, elected)
		if took := time.Since(start); took > 5*time.Second { // unheard, it would be the Retry of an hour
			t.Errorf("it took %v", took)
		}
		leaderIs(t, s, bob)
		stillHeld(t, lost)
		first.Release() // ends nothing of another's
		leaderIs(t, s, bob)
		second.Release()
		leaderIs(t, s, "")
	})
}

func TestElectorRenews(t *testing.T) {
	onTwo(t, func(t *testing.T, b backend) {
		s, f := flaky(t, b)
		e := s.Elector(ElectorOptions{TTL: 2 * time.Second}) // a third of it later it is renewed, on a busy machine too
		lost := elect(t, e, alice)
		defer e.Release()
		f.plan("evalsha", lostReply, fault{err: errors.New("ERR out of order")}) // trouble in between is borne
		eventually(t, "renewals", func() bool { return f.sent("evalsha") >= 6 })
		stillHeld(t, lost)
		leaderIs(t, s, alice)
	})
}

func TestElectorLosesWhatIsTaken(t *testing.T) {
	onTwo(t, func(t *testing.T, b backend) {
		for thief, steal := range map[cluster.WorkerID]func(s *testStore) error{
			"":        func(s *testStore) error { return s.client.Del(t.Context(), s.leaderKey()).Err() },
			"w-thief": func(s *testStore) error { return s.client.Set(t.Context(), s.leaderKey(), "w-thief", 0).Err() },
		} {
			s := b.open(t)
			e := s.Elector(ElectorOptions{TTL: 300 * time.Millisecond})
			lost := elect(t, e, alice)
			ok(t, steal(s))
			receive(t, lost)
			leaderIs(t, s, thief)
			if _, err := e.Acquire(as(t, alice)); err == nil {
				t.Error("acquired before the release")
			}
			e.Release()
			e.Release()
			leaderIs(t, s, thief) // not deleted
		}
	})
}

// A leader whose renewals hang steps down while nobody else can have the leadership yet.
func TestElectorStepsDownInTime(t *testing.T) {
	onTwo(t, func(t *testing.T, b backend) {
		thaw := make(chan struct{})
		freeze := make(chan struct{})
		s := b.open(t, hook(func(ctx context.Context, script string, cmd redis.Cmder, next redis.ProcessHook) error {
			select {
			case <-freeze:
				if cmd.Name() == "evalsha" && script == "" {
					<-thaw // heeds no context
				}
			default:
			}
			return next(ctx, cmd)
		}))
		e := s.Elector(ElectorOptions{TTL: 5 * time.Second}) // 6 % of it is left when it steps down, on a machine that is in time
		lost := elect(t, e, alice)
		close(freeze)
		receive(t, lost)
		if left, err := s.client.PTTL(t.Context(), s.leaderKey()).Result(); err != nil || left <= 0 {
			t.Errorf("%v were left, %v", left, err)
		}
		close(thaw)
		e.Release()
		leaderIs(t, s, "")
	})
}

// A process that slept finds that its time is over.
func TestElectorThatSlept(t *testing.T) {
	onTwo(t, func(t *testing.T, b backend) {
		s := b.open(t)
		clock := clockwork.NewFakeClock()
		e := s.Elector(ElectorOptions{Clock: clock})
		lost := elect(t, e, alice)
		clock.Advance(15 * time.Second)
		receive(t, lost)
		e.Release()
		leaderIs(t, s, "")
	})
}

func TestElectorHonoursItsContext(t *testing.T) {
	onTwo(t, func(t *testing.T, b backend) {
		s, f := flaky(t, b)
		if won, err := s.AcquireLeadership(t.Context(), bob, time.Hour); err != nil || !won {
			t.Fatal(won, err)
		}
		e := s.Elector(ElectorOptions{Retry: 20 * time.Millisecond})
		ctx, cancel := context.WithCancel(as(t, alice))
		ended := make(chan error, 1)
		go func() {
			_, err := e.Acquire(ctx)
			ended <- err
		}()
		eventually(t, "a look", func() bool { return f.sent("pttl") >= 1 })
		cancel()
		if err := receive(t, ended); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if _, err := e.Acquire(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		ok(t, s.DeregisterWorker(t.Context(), bob))
		elect(t, e, alice)
		e.Release()
	})
}

// Redis may be away, and answers may be lost, while a worker waits to be elected.
func TestElectorBearsTrouble(t *testing.T) {
	onTwo(t, func(t *testing.T, b backend) {
		s, f := flaky(t, b)
		e := s.Elector(ElectorOptions{Retry: 10 * time.Millisecond})
		f.plan("set", fault{err: errors.New("ERR not now")}, fault{err: errors.New("LOADING wait")}, lostReply)
		lost := elect(t, e, alice)
		leaderIs(t, s, alice)
		stillHeld(t, lost)
		f.plan("evalsha", lostReply)
		e.Release()
		leaderIs(t, s, "")
	})
}

func TestElectorWithoutAWorker(t *testing.T) {
	onTwo(t, func(t *testing.T, b backend) {
		s := b.open(t)
		e := s.Elector(ElectorOptions{})
		e.Release() // of nothing
		var ids []cluster.WorkerID
		for range 2 {
			_, err := e.Acquire(t.Context())
			ok(t, err)
			w, err := s.GetLeader(t.Context())
			ok(t, err)
			ids = append(ids, w.ID)
			var wait sync.WaitGroup
			for range 4 {
				wait.Go(e.Release)
			}
			wait.Wait()
		}
		if ids[0] != ids[1] || ids[0] == "" {
			t.Errorf("IDs %v", ids)
		}
	})
}

func TestElectorOptions(t *testing.T) {
	t.Parallel()
	s := openMini(t)
	for _, ttl := range []time.Duration{-1, time.Millisecond} {
		var field *dispatch.FieldError
		if _, err := s.Elector(ElectorOptions{TTL: ttl}).Acquire(t.Context()); !errors.As(err, &field) {
			t.Errorf("TTL %v: got %v", ttl, err)
		}
	}
	var field *dispatch.FieldError
	if _, err := s.Elector(ElectorOptions{}).Acquire(as(t, "a b")); !errors.As(err, &field) {
		t.Errorf("got %v", err)
	}
}

// Many electors with a short TTL that resign, one after the other: there is never more than one leader.
func TestElectorsTakeTurns(t *testing.T) {
	onTwo(t, func(t *testing.T, b backend) {
		s := b.open(t)
		ctx, cancel := context.WithCancel(t.Context())
		joined, ended := make(chan struct{}, 16), make(chan error, 1)
		go func() {
			ended <- s.Listen(ctx, func() { joined <- struct{}{} }, func([]dispatch.Hint) {})
		}()
		receive(t, joined)
		defer func() {
			cancel()
			<-ended
		}()
		var mu sync.Mutex
		leading := false
		var wait sync.WaitGroup
		for range 8 {
			wait.Go(func() {
				e := s.Elector(ElectorOptions{Retry: 100 * time.Millisecond})
				for range 3 {
					lost, err := e.Acquire(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					if leading {
						t.Error("two lead at once")
					}
					leading = true
					mu.Unlock()
					time.Sleep(time.Millisecond)
					stillHeld(t, lost)
					mu.Lock()
					leading = false
					mu.Unlock()
					e.Release()
				}
			})
		}
		wait.Wait()
		leaderIs(t, s, "")
	})
}

// Who waits for a leadership that is another's asks for it when it can end, and not before.
func TestElectorWaitsForTheEnd(t *testing.T) {
	onTwo(t, func(t *testing.T, b backend) {
		s, f := flaky(t, b)
		if won, err := s.AcquireLeadership(t.Context(), bob, 10*time.Minute); err != nil || !won {
			t.Fatal(won, err)
		}
		tries := f.sent("set")
		clock := clockwork.NewFakeClock()
		e := s.Elector(ElectorOptions{Clock: clock, Retry: 20 * time.Millisecond})
		ctx, cancel := context.WithCancel(as(t, alice))
		ended := make(chan error, 1)
		go func() {
			_, err := e.Acquire(ctx)
			ended <- err
		}()
		for looks := range 3 {
			ok(t, clock.BlockUntilContext(t.Context(), 1))
			if n := f.sent("pttl"); n != looks+1 || f.sent("set") != tries {
				t.Fatalf("%d looks and %d tries after %d ends", n, f.sent("set")-tries, looks)
			}
			clock.Advance(9 * time.Minute) // a real server counts down meanwhile, as long as the test takes
			ok(t, clock.BlockUntilContext(t.Context(), 1))
			if n := f.sent("pttl"); n != looks+1 {
				t.Fatalf("looked %d times before the leadership can end", n)
			}
			clock.Advance(61 * time.Second)
			eventually(t, "the next look", func() bool { return f.sent("pttl") == looks+2 })
		}
		cancel()
		if err := receive(t, ended); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}
