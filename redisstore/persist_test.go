package redisstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/internal/redistest"
)

// said is what a server answers with.
type said string

func (e said) Error() string { return string(e) }
func (said) RedisError()     {}

func TestJudge(t *testing.T) {
	t.Parallel()
	dial := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	read := &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}
	for _, tc := range []struct {
		err  error
		want verdict
	}{
		{said("OOM command not allowed when used memory > 'maxmemory'."), full},
		{said("LOADING Redis is loading the dataset in memory"), refused},
		{said("BUSY Redis is busy running a script."), refused},
		{said("CLUSTERDOWN The cluster is down"), refused},
		{said("TRYAGAIN Multiple keys request during rehashing of slot"), refused},
		{said("MASTERDOWN Link with MASTER is down"), refused},
		{said("READONLY You can't write against a read only replica."), refused},
		{said("NOREPLICAS Not enough good replicas to write."), refused},
		{said("MISCONF Redis is configured to save RDB snapshots"), refused},
		{said("MOVED 1 127.0.0.1:1"), refused},
		{said("ASK 1 127.0.0.1:1"), refused},
		{said("ERR unknown command"), final},
		{said("WRONGTYPE Operation against a key"), final},
		{said("NOPERM this user has no permissions"), final},
		{said("NOAUTH Authentication required."), final},
		{redis.ErrClosed, final},
		{redis.ErrPoolTimeout, refused},
		{redis.ErrPoolExhausted, refused},
		{dial, refused},
		{fmt.Errorf("wrapped: %w", dial), refused},
		{read, maybeDone},
		{io.EOF, maybeDone},
		{io.ErrUnexpectedEOF, maybeDone},
		{net.ErrClosed, maybeDone},
		{&net.OpError{Op: "write", Err: syscall.EPIPE}, maybeDone},
		{syscall.ECONNRESET, maybeDone},
		{context.DeadlineExceeded, maybeDone},
		{context.Canceled, maybeDone},
		{errors.New("anything else"), maybeDone},
	} {
		if got := judge(tc.err); got != tc.want {
			t.Errorf("%v: got %d, want %d", tc.err, got, tc.want)
		}
	}
}

func TestPersist(t *testing.T) {
	t.Parallel()
	loading, lost, broken, oom := said("LOADING wait"), io.EOF, said("ERR broken"), said("OOM no memory")
	for _, tc := range []struct {
		name  string
		mode  persistence
		fails []error // then it works
		calls int
		want  []error // all of them; none is success
		not   error
	}{
		{"success", evenUncertain, nil, 1, nil, nil},
		{"refusals are waited out", onlyRefused, []error{loading, loading, loading}, 4, nil, nil},
		{"nil is an answer", onlyRefused, []error{redis.Nil}, 1, []error{redis.Nil}, nil},
		{"an error that stays", evenUncertain, []error{broken}, 1, []error{broken}, dispatch.ErrUncertain},
		{"a full store", evenUncertain, []error{oom}, 1, []error{oom, dispatch.ErrStoreFull}, dispatch.ErrUncertain},
		{"a lost answer is asked for again", evenUncertain, []error{lost, lost}, 3, nil, nil},
		{"a lost answer that must not be", onlyRefused, []error{lost}, 1, []error{lost, dispatch.ErrUncertain}, nil},
		{"refused, then lost", onlyRefused, []error{loading, lost}, 2, []error{lost, dispatch.ErrUncertain}, nil},
		{"lost, then broken: it may have run", evenUncertain, []error{lost, broken}, 2, []error{broken, dispatch.ErrUncertain}, nil},
		{"lost, then full: it may have run", evenUncertain, []error{lost, oom}, 2, []error{oom, dispatch.ErrUncertain}, dispatch.ErrStoreFull},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			err := new(Store).persist(t.Context(), tc.mode, func(ctx context.Context) error {
				if _, bounded := ctx.Deadline(); !bounded {
					t.Error("the call has no deadline")
				}
				if calls++; calls <= len(tc.fails) {
					return tc.fails[calls-1]
				}
				return nil
			})
			if calls != tc.calls {
				t.Errorf("%d calls, want %d", calls, tc.calls)
			}
			if (err == nil) != (tc.want == nil) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
			for _, want := range tc.want {
				if !errors.Is(err, want) {
					t.Errorf("%v is not %v", err, want)
				}
			}
			if tc.not != nil && errors.Is(err, tc.not) {
				t.Errorf("%v is %v", err, tc.not)
			}
		})
	}
}

func TestPersistUntilTheContextEnds(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name      string
		first     error
		uncertain bool
	}{
		{"refused", said("LOADING wait"), false},
		{"lost first", io.EOF, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			calls := 0
			err := new(Store).persist(ctx, evenUncertain, func(context.Context) error {
				switch calls++; calls {
				case 1:
					return tc.first
				case 4:
					cancel()
				}
				return said("LOADING wait")
			})
			if calls != 4 || errors.Is(err, dispatch.ErrUncertain) != tc.uncertain || !redis.HasErrorPrefix(err, "LOADING") && !tc.uncertain {
				t.Errorf("%d calls, %v", calls, err)
			}
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%v says nothing of the context", err)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := new(Store).persist(ctx, evenUncertain, func(context.Context) error {
		t.Error("called although the context has ended")
		return nil
	})
	if !errors.Is(err, context.Canceled) || errors.Is(err, dispatch.ErrUncertain) {
		t.Errorf("got %v", err)
	}
}

// A deadline may be the client's own, and says nothing to its caller.
func TestPersistUntilADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := new(Store).persist(ctx, evenUncertain, func(context.Context) error { return said("LOADING wait") })
		if !redis.HasErrorPrefix(err, "LOADING") || errors.Is(err, context.DeadlineExceeded) || ctx.Err() == nil {
			t.Errorf("got %v", err)
		}
	})
}

// A server's refusals, as it words them, through every layer.
func TestServerRefuses(t *testing.T) {
	t.Parallel()
	server := miniredis.NewMiniRedis()
	s := &testStore{Store: newTestStore(t, dialMini(t, server), Options{}, "")}
	put(t, s, "a")

	server.SetError("OOM command not allowed when used memory > 'maxmemory'.")
	_, err := s.Enqueue(t.Context(), mail, []dispatch.Submission{task("b")}, dispatch.EnqueueOptions{})
	if !errors.Is(err, dispatch.ErrStoreFull) || errors.Is(err, dispatch.ErrUncertain) {
		t.Errorf("full: got %v", err)
	}
	server.SetError("ERR no such thing")
	_, err = s.Claim(t.Context(), claimRequest(alice, 1, 1))
	if err == nil || errors.Is(err, dispatch.ErrUncertain) || !strings.HasPrefix(err.Error(), "redisstore: claim: ERR") {
		t.Errorf("broken: got %v", err)
	}
	server.SetError("CLUSTERDOWN The cluster is down")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = s.Enqueue(ctx, mail, []dispatch.Submission{task("b")}, dispatch.EnqueueOptions{})
	// On a slow machine the context may end in the middle of a try, and then nobody knows.
	if cut := errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded); !cut &&
		(!redis.HasErrorPrefix(err, "CLUSTERDOWN") || errors.Is(err, dispatch.ErrUncertain)) {
		t.Errorf("down: got %v", err)
	}
	server.SetError("")
	if got := ids(claim(t, s, alice, 2, 10).Leased); got != "a " {
		t.Errorf("claimed %q", got)
	}
}

func TestNobodyListens(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	addr := listener.Addr().String()
	ok(t, listener.Close())
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = Open(ctx, "redis://"+addr, Options{Logger: quiet})
	if err == nil || !strings.HasPrefix(err.Error(), "redisstore: server does not answer: ") || errors.Is(err, dispatch.ErrUncertain) {
		t.Errorf("got %v", err)
	}
}

// A server that hangs holds nobody longer than his context. What was asked of it may happen later.
func TestServerHangs(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s, err := Open(t.Context(), server.URL(), Options{Logger: quiet})
	ok(t, err)
	defer s.Close()
	st := &testStore{Store: s}
	put(t, st, "a")
	ok(t, server.Pause())
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = s.Enqueue(ctx, mail, []dispatch.Submission{task("b")}, dispatch.EnqueueOptions{})
	if !errors.Is(err, dispatch.ErrUncertain) {
		t.Errorf("got %v", err)
	}
	ok(t, server.Resume())
	if r := enqueue(t, st, task("b")); r.Duplicate[0] {
		t.Error("the repeated call is a duplicate")
	}
	if got := ids(claim(t, st, alice, 1, 10).Leased); got != "a b " {
		t.Errorf("claimed %q", got)
	}
	sound(t, st, mail)
}
