package redisstore

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/internal/redistest"
)

// awaiter is a call of ListenEnded that runs.
type awaiter struct {
	joined chan struct{}
	heard  chan []dispatch.TaskID
}

func awaitEnds(t *testing.T, s *Store) *awaiter {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	a := &awaiter{make(chan struct{}, 16), make(chan []dispatch.TaskID, 16)}
	ended := make(chan error, 1)
	go func() {
		ended <- s.ListenEnded(ctx, func() { a.joined <- struct{}{} }, func(_ string, ids []dispatch.TaskID) { a.heard <- ids })
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	receive(t, a.joined)
	return a
}

// finish awaits a new task and lets it end.
func finish(t *testing.T, s *testStore, id string) {
	t.Helper()
	put(t, s, id)
	_, err := s.Await(t.Context(), mail, []dispatch.TaskID{dispatch.TaskID(id)})
	ok(t, err)
	remove(t, s, 0, dispatch.TaskID(id))
}

// After an interruption whoever waits is told, for messages may have been missed, and hears again.
func TestAwaiterComesBack(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s, err := Open(t.Context(), server.URL(), Options{Logger: quiet})
	ok(t, err)
	defer s.Close()
	a := awaitEnds(t, s)
	for _, id := range []string{"a", "b"} {
		_, err := server.Command("CLIENT", "KILL", "TYPE", "pubsub")
		ok(t, err)
		receive(t, a.joined)
		finish(t, &testStore{Store: s}, id)
		if got := receive(t, a.heard); !slices.Equal(got, []dispatch.TaskID{dispatch.TaskID(id)}) {
			t.Errorf("heard of %v", got)
		}
	}
}

// Anybody may publish to the channel.
func TestAwaiterBearsNonsense(t *testing.T) {
	onTwo(t, func(t *testing.T, b backend) {
		s := b.open(t)
		a := awaitEnds(t, s.Store)
		for _, message := range []string{"", " ", "mail", "\x00", "mail x"} {
			ok(t, s.client.Publish(t.Context(), s.endedChannel(), message).Err())
		}
		finish(t, s, "a")
		for _, want := range []dispatch.TaskID{"x", "a"} {
			if got := receive(t, a.heard); got[0] != want {
				t.Errorf("heard of %v, want %s", got, want)
			}
		}
	})
}

// A worker that may not publish to the channel settles all the same: those who wait find out when they look again.
func TestSettleWithoutTheRightToPublish(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	_, err := server.Command("ACL", "SETUSER", "worker", "on", ">pw", "~*", "+@all", "resetchannels", "&dispatch:{~}:wake")
	ok(t, err)
	s, err := Open(t.Context(), strings.Replace(server.URL(), "redis://", "redis://worker:pw@", 1), Options{Logger: quiet})
	ok(t, err)
	defer s.Close()
	w := &testStore{Store: s}
	put(t, w, "a", "b")
	leased := claim(t, w, alice, 1, 1).Leased
	if ended, err := s.Await(t.Context(), mail, []dispatch.TaskID{"a", "b"}); err != nil || len(ended) != 0 {
		t.Fatalf("ended: %v, %v", ended, err)
	}
	if r, err := s.Settle(t.Context(), settleRequest(1, dispatch.Succeeded, time.Hour, leased...)); err != nil || !r.Applied[0] {
		t.Errorf("settled: %+v, %v", r, err)
	}
	remove(t, &testStore{Store: s}, 0, "b")
	if ended, err := s.Await(t.Context(), mail, []dispatch.TaskID{"a", "b"}); err != nil || len(ended) != 2 {
		t.Errorf("ended: %v, %v", ended, err)
	}
	sound(t, w, mail)
}

func TestAwaitOfTooMany(t *testing.T) {
	t.Parallel()
	s := openMini(t)
	for _, n := range []int{0, maxScriptItems + 1} {
		if _, err := s.Await(t.Context(), mail, make([]dispatch.TaskID, n)); err == nil {
			t.Errorf("await of %d tasks succeeds", n)
		}
	}
}
