package dispatchtest

import (
	"context"
	"log/slog"
	"maps"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/jonboulle/clockwork"
	"github.com/redis/go-redis/v9"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/redisstore"
)

// Start is the instant at which the time of a new Store stands. It lies far ahead, so that a deadline by that time has
// not passed by the machine's: handlers can use their contexts for connections, which know no other time.
var Start = time.Date(2100, time.January, 1, 0, 0, 0, 0, time.UTC)

// Store is a store on an embedded server whose time stands still until Advance moves it.
type Store struct {
	*redisstore.Store
	// Clock is the clock of the store and of the dispatchers that NewDispatcher makes. Read it as you like, but move it
	// with Advance only.
	Clock *clockwork.FakeClock

	server *miniredis.Miniredis

	mu      sync.Mutex
	awaited map[string][]dispatch.TaskID // queues of which tasks were waited for, with one of them
}

// NewStore starts an empty store, which ends with the test. It opens no socket.
func NewStore(t testing.TB) *Store {
	t.Helper()
	server := miniredis.NewMiniRedis()
	server.ClockTTL(true) // expiries follow SetTime
	server.SetTime(Start)
	client := redis.NewClient(&redis.Options{
		Addr:                  "127.0.0.1:6379", // never dialled; a name would be looked up
		Dialer:                func(context.Context, string, string) (net.Conn, error) { return server.Dial() },
		ContextTimeoutEnabled: true,
		MaxRetries:            -1,
		DisableIdentity:       true,
		PoolSize:              1000, // in a synctest bubble nobody may wait for a connection: the client's timers for that outlive it
	})
	t.Cleanup(func() {
		client.Close()
		server.Close()
	})
	store, err := redisstore.New(client, redisstore.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatalf("dispatchtest.NewStore: %v", err)
	}
	return &Store{Store: store, Clock: clockwork.NewFakeClockAt(Start), server: server}
}

// Durable implements dispatch.Replicator as if all replicas were there: a program that asks for them is tested like any other.
func (s *Store) Durable(dispatch.Durability) (dispatch.Store, error) { return s, nil }

// Advance moves the time of the store, its expiries and the timers of its dispatchers forward by d, all at once. What
// falls due meanwhile has not run when Advance returns; RunUntilIdle runs it.
func (s *Store) Advance(d time.Duration) {
	// The server first: a timer that fires then finds its task due.
	s.server.SetTime(s.Clock.Now().Add(d))
	s.renewAwaited()
	s.Clock.Advance(d)
}

// Await implements dispatch.Awaiter.
func (s *Store) Await(ctx context.Context, queue string, ids []dispatch.TaskID) ([]dispatch.TaskID, error) {
	s.mu.Lock()
	if s.awaited == nil {
		s.awaited = make(map[string][]dispatch.TaskID)
	}
	s.awaited[queue] = ids[:min(len(ids), 1)]
	s.mu.Unlock()
	return s.Store.Await(ctx, queue, ids)
}

// renewAwaited keeps the store from forgetting in a leap of time who waits for its tasks, and would have told it meanwhile.
func (s *Store) renewAwaited() {
	s.mu.Lock()
	awaited := maps.Clone(s.awaited)
	s.mu.Unlock()
	for queue, ids := range awaited {
		_, _ = s.Store.Await(context.Background(), queue, ids) // after an error whoever waits looks later
	}
}
