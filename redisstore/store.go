package redisstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dispatchkit/dispatch"
)

// schema is the version of the layout of keys and records that this code reads and writes.
const schema = "1"

// Options are the settings of a Store. The zero value is ready for use.
type Options struct {
	// Prefix begins every key and the channel; empty means "dispatch". 1 to 50 characters of [A-Za-z0-9._:-]. Stores
	// with different prefixes share a server without knowing of each other.
	Prefix string
	// Logger gets warnings about the server and the client; nil means slog.Default().
	Logger *slog.Logger
}

// Store is a dispatch.Store in Redis. It is safe for concurrent use. It holds no goroutine while no call runs; one may go on
// for up to 5 s after the context of the last has ended, and with a Durability its Timeout longer.
type Store struct {
	client  redis.UniversalClient
	owned   bool // Close closes the client
	prefix  string
	log     *slog.Logger
	scripts scripts
	lanes   lanes
	convoys sync.Map      // *redis.Client of a server → *convoy; one of a master that is gone is small, and stays
	company time.Duration // convoyPatience, but in tests
	vacant  bell          // rings when the leadership was given up

	// durability is what is acknowledged through this view of a store, base the store without it; listed are the queues that the
	// view knows to be listed on replicas too, a few bytes each.
	durability dispatch.Durability
	base       *Store
	listed     sync.Map

	// now is the ARGV[1] of every script: empty for the server's TIME, which is what everybody but a test uses.
	now func() string
}

var _ dispatch.Store = (*Store)(nil)

// New makes a store on a client of the caller's, who closes it after the store's last use. Small calls made at the same
// moment may share a pipeline, which hooks of the client see without the values of any caller's context. It waits up to 5 s for the
// server, and refuses one that is older than Redis 6.2 or whose prefix is used by a layout it does not know. It warns of
// settings, of the server and of the client, with which tasks or time may be lost; Open makes a client without them.
//
// Errors: *dispatch.FieldError for the options; otherwise what the server said.
func New(client redis.UniversalClient, o Options) (*Store, error) {
	return newStore(context.Background(), client, o, "")
}

func newStore(ctx context.Context, client redis.UniversalClient, o Options, preamble string) (*Store, error) {
	if client == nil {
		return nil, &dispatch.FieldError{Field: "client", Problem: "is nil"}
	}
	if o.Prefix == "" {
		o.Prefix = "dispatch"
	}
	if !prefixPattern.MatchString(o.Prefix) {
		return nil, &dispatch.FieldError{Field: "Options.Prefix", Problem: "does not match " + prefixPattern.String()}
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	s := &Store{
		client: client, prefix: o.Prefix, log: o.Logger, scripts: loadScripts(preamble), lanes: newLanes(),
		company: convoyPatience,
		now:     func() string { return "" },
	}
	if err := s.checkServer(ctx); err != nil {
		return nil, err
	}
	s.checkClient()
	return s, nil
}

// Close closes the client if Open made it, and does nothing otherwise.
func (s *Store) Close() error {
	if !s.owned {
		return nil
	}
	return s.client.Close()
}

// checkServer makes sure that the server can run the scripts and that its keys are of this layout.
func (s *Store) checkServer(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := s.persist(ctx, evenUncertain, func(ctx context.Context) error { return s.client.Ping(ctx).Err() }); err != nil {
		return fmt.Errorf("redisstore: server does not answer: %w", err)
	}
	// Servers that only pretend to be Redis do not know these questions; they get the benefit of the doubt.
	if info, err := s.client.Info(ctx, "server").Result(); err == nil {
		if v := infoField(info, "redis_version"); v != "" && olderThan(v, 6, 2) {
			return fmt.Errorf("redisstore: server is Redis %s; 6.2 or later is needed", v)
		}
	}
	if info, err := s.client.Info(ctx, "memory").Result(); err == nil {
		if policy := infoField(info, "maxmemory_policy"); policy != "" && policy != "noeviction" {
			s.log.Warn("redisstore: the server may evict keys, and tasks with them; set maxmemory-policy noeviction",
				"maxmemory_policy", policy)
		}
	}
	return s.checkSchema(ctx)
}

func (s *Store) checkSchema(ctx context.Context) error {
	var found string
	err := s.persist(ctx, evenUncertain, func(ctx context.Context) error {
		if err := s.client.SetNX(ctx, s.schemaKey(), schema, 0).Err(); err != nil && judge(err) != full {
			return err // a full store takes no new key, but can be worked on
		}
		var err error
		found, err = s.client.Get(ctx, s.schemaKey()).Result()
		return err
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return fmt.Errorf("redisstore: schema version: %w", err)
	}
	if found != "" && found != schema {
		return fmt.Errorf("redisstore: prefix %q holds schema version %s; this program knows version %s",
			s.prefix, found, schema)
	}
	return nil
}

// checkClient warns of settings of a caller's client that make calls ignore their context.
func (s *Store) checkClient() {
	honoursContext := true
	switch c := s.client.(type) {
	case *redis.Client:
		honoursContext = c.Options().ContextTimeoutEnabled
	case *redis.ClusterClient:
		honoursContext = c.Options().ContextTimeoutEnabled
		if c.Options().ClusterStateReloadInterval > 5*time.Second {
			s.log.Warn("redisstore: the cluster client learns late of a failover; set ClusterStateReloadInterval to 1 s",
				"interval", c.Options().ClusterStateReloadInterval)
		}
	}
	if !honoursContext {
		s.log.Warn("redisstore: calls may outlast their context; set ContextTimeoutEnabled on the Redis client")
	}
}

// infoField finds "name:value" in the answer to INFO.
func infoField(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+":"); ok {
			return value
		}
	}
	return ""
}

var versionPattern = regexp.MustCompile(`^(\d+)\.(\d+)`)

func olderThan(version string, major, minor int) bool {
	m := versionPattern.FindStringSubmatch(version)
	if m == nil {
		return false
	}
	a, _ := strconv.Atoi(m[1])
	b, _ := strconv.Atoi(m[2])
	return a < major || a == major && b < minor
}

// ms is a duration in whole milliseconds, rounded up so that nothing is early.
func ms(d time.Duration) int64 {
	n := int64(d / time.Millisecond)
	if d%time.Millisecond > 0 {
		n++
	}
	return n
}

// wait is a number of milliseconds from a script; below zero means "nothing known" or "overdue", as the caller says.
func wait(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

func millis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
