package redisstore

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/internal/redistest"
)

// listener is a call of Listen that runs.
type listener struct {
	joined chan struct{}
	heard  chan []dispatch.Hint
	ended  chan error
	end    context.CancelFunc
}

func listen(t *testing.T, s *Store) *listener {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &listener{make(chan struct{}, 16), make(chan []dispatch.Hint, 16), make(chan error, 1), cancel}
	go func() {
		l.ended <- s.Listen(ctx, func() { l.joined <- struct{}{} }, func(h []dispatch.Hint) { l.heard <- h })
	}()
	t.Cleanup(func() {
		cancel()
		<-l.ended
	})
	receive(t, l.joined)
	return l
}

// receive waits for what must come.
func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(20 * time.Second):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

// After an interruption a listener is told, for messages may have been missed, and hears again.
func TestListenerComesBack(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name      string
		interrupt func(server *redistest.Server) error
	}{
		{"the connection breaks", func(server *redistest.Server) error {
			_, err := server.Command("CLIENT", "KILL", "TYPE", "pubsub")
			return err
		}},
		{"the server crashes", func(server *redistest.Server) error {
			server.Kill()
			return server.Restart()
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			s, err := Open(t.Context(), server.URL(), Options{Logger: quiet})
			ok(t, err)
			defer s.Close()
			l := listen(t, s)
			for range 2 {
				ok(t, tc.interrupt(server))
				receive(t, l.joined)
				ok(t, s.Announce(t.Context(), []dispatch.Hint{{Queue: mail}}))
				receive(t, l.heard)
			}
		})
	}
}

// Anybody may publish to the channel.
func TestListenerBearsNonsense(t *testing.T) {
	onTwo(t, func(t *testing.T, b backend) {
		s := b.open(t)
		l := listen(t, s.Store)
		for _, message := range []string{"", "nonsense", "x y", "-5 mail", "\x00", "5 mail x", "7! a 8 b"} {
			ok(t, s.client.Publish(t.Context(), s.wakeChannel(), message).Err())
		}
		for _, want := range []string{"mail", "a"} {
			if got := receive(t, l.heard); got[0].Queue != want {
				t.Errorf("heard %v, want %s", got, want)
			}
		}
	})
}

func TestListenerOfAClosedClient(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t, redistest.Single)
	s, err := Open(t.Context(), server.URL(), Options{Prefix: "closed", Logger: quiet})
	ok(t, err)
	ok(t, s.Close())
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := s.Listen(ctx, func() { t.Error("joined") }, func([]dispatch.Hint) {}); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
