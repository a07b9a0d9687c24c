package servers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// cluster starts one, and a client of it that goes through the proxies.
func cluster(t *testing.T) (*Set, *redis.ClusterClient) {
	t.Helper()
	s := launch(t, Cluster, Config{})
	c := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs:                      strings.Split(strings.TrimPrefix(s.URL(), "redis://"), ","),
		ClusterStateReloadInterval: time.Second,
	})
	t.Cleanup(func() { c.Close() })
	return s, c
}

func masterOf(t *testing.T, s *Set, key string) *Node {
	t.Helper()
	n, err := s.MasterOf(key)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func replicaOf(t *testing.T, s *Set, master *Node) *Node {
	t.Helper()
	n, err := s.ReplicaOf(master)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Whatever a client learns about the cluster leads it to a proxy.
func TestClusterAnnouncesItsProxies(t *testing.T) {
	t.Parallel()
	s, c := cluster(t)
	ctx := soon(t)
	masters, err := s.Masters()
	if err != nil || len(masters) != 3 {
		t.Fatalf("%d masters, %v", len(masters), err)
	}
	for i := range 100 {
		set(t, c, fmt.Sprint("k", i), "v")
	}
	for _, n := range s.Nodes {
		if err := await(ctx, func() error { return namesProxies(ctx, s, n) }); err != nil {
			t.Errorf("%s: %v", n.Direct(), err)
		}
	}
	for _, m := range masters {
		if got := m.Proxy().Stats(); got.Requests < 20 {
			t.Errorf("only %d requests went through the proxy of %s", got.Requests, m.Direct())
		}
		requireRole(t, replicaOf(t, s, m), "slave")
		_, err := m.Command("SET", "k0", "v")
		if owner := masterOf(t, s, "k0"); m != owner && (err == nil || !strings.HasSuffix(err.Error(), owner.Addr())) {
			t.Errorf("%s redirects with %v, not to %s", m.Direct(), err, owner.Addr())
		}
	}
}

// namesProxies looks at the table of slots that clients get.
func namesProxies(ctx context.Context, s *Set, n *Node) error {
	c := redis.NewClient(&redis.Options{Addr: n.Direct()})
	defer c.Close()
	shards, err := c.ClusterShards(ctx).Result()
	if err != nil {
		return err
	}
	for _, shard := range shards {
		if len(shard.Nodes) != 2 {
			return fmt.Errorf("slots %v are at %d nodes", shard.Slots, len(shard.Nodes))
		}
		for _, told := range shard.Nodes {
			if _, err := s.at(fmt.Sprintf("%s:%d", told.Endpoint, told.Port)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Faults of a proxy hit clients, not replication.
func TestClusterReplicatesThroughFaults(t *testing.T) {
	t.Parallel()
	s, c := cluster(t)
	set(t, c, "k", "v")
	master := masterOf(t, s, "k")
	replica := replicaOf(t, s, master)
	syncs := fullSyncs(t, master)
	for range 3 {
		master.Proxy().Cut()
	}
	master.Proxy().BlackHole(true)
	if _, err := master.Command("SET", "k", "w"); err != nil {
		t.Fatal(err)
	}
	requireReady(t, s)
	if _, err := replica.Command("PING"); err != nil {
		t.Fatal(err)
	}
	master.Proxy().BlackHole(false)
	requireValue(t, c, "k", "w")
	if got := fullSyncs(t, master); got != syncs {
		t.Errorf("the replica was lost: %s full syncs, were %s", got, syncs)
	}
}

func fullSyncs(t *testing.T, n *Node) string {
	t.Helper()
	info, err := n.Command("INFO", "stats")
	if err != nil {
		t.Fatal(err)
	}
	return field(info, "sync_full")
}

func TestClusterMasterDies(t *testing.T) {
	t.Parallel()
	s, c := cluster(t)
	set(t, c, "k", "v")
	requireReady(t, s)
	old := masterOf(t, s, "k")
	replica := replicaOf(t, s, old)
	old.Kill()
	requireReady(t, s) // thus after the failover
	if n := masterOf(t, s, "k"); n != replica {
		t.Errorf("the master is %s, want the replica %s", n.Direct(), replica.Direct())
	}
	requireValue(t, c, "k", "v")
	if err := old.Restart(); err != nil {
		t.Fatal(err)
	}
	requireReady(t, s)
	if n := replicaOf(t, s, replica); n != old {
		t.Errorf("the replica is %s, want the old master %s", n.Direct(), old.Direct())
	}
}

func TestClusterFailOver(t *testing.T) {
	t.Parallel()
	s, c := cluster(t)
	for i, how := range []Failover{Graceful, Force, Takeover} {
		key := fmt.Sprint("k", i)
		set(t, c, key, "v")
		requireReady(t, s)
		old := masterOf(t, s, key)
		replica := replicaOf(t, s, old)
		begun := time.Now()
		if err := s.FailOver(soon(t), replica, how); err != nil {
			t.Fatal(err)
		}
		t.Logf("failover %q in %v", how, since(begun))
		requireReady(t, s)
		if n := masterOf(t, s, key); n != replica {
			t.Errorf("%q: the master is %s, want %s", how, n.Direct(), replica.Direct())
		}
		requireRole(t, old, "slave")
		requireValue(t, c, key, "v")
	}
	if err := s.FailOver(soon(t), masterOf(t, s, "k0"), Graceful); err == nil {
		t.Error("a master takes over from itself")
	}
}

// A slot moves back and forth under load, with all keys, and none is lost.
func TestMigrateSlot(t *testing.T) {
	t.Parallel()
	s, c := cluster(t)
	ctx := soon(t)
	slot, err := s.Slot("{hot}")
	if err != nil {
		t.Fatal(err)
	}
	var written atomic.Int64
	load, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	for w := range 4 {
		group.Go(func() {
			for i := 0; load.Err() == nil; i++ {
				// Each key has to be new once, and each value is one that was acknowledged.
				key := fmt.Sprintf("{hot}:%d:%d", w, i)
				if err := c.Set(ctx, key, key, 0).Err(); err != nil {
					t.Errorf("SET under load: %v", err)
					return
				}
				written.Add(1)
			}
		})
	}
	defer group.Wait()
	defer stop()
	masters, err := s.Masters()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		enough := written.Load() + 1000
		if err := await(ctx, func() error {
			if written.Load() < enough {
				return errors.New("too few keys")
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		from := masterOf(t, s, "{hot}")
		to := masters[(slices.Index(masters, from)+1)%len(masters)]
		begun := time.Now()
		if err := s.MigrateSlot(slot, from, to); err != nil {
			t.Fatal(err)
		}
		t.Logf("slot %d moved in %v", slot, since(begun))
		if n := masterOf(t, s, "{hot}"); n != to {
			t.Errorf("the slot is at %s, want %s", n.Direct(), to.Direct())
		}
	}
	stop()
	group.Wait()
	requireReady(t, s)
	count, err := masterOf(t, s, "{hot}").Command("CLUSTER", "COUNTKEYSINSLOT", strconv.Itoa(slot))
	if want := strconv.FormatInt(written.Load(), 10); count != want || err != nil {
		t.Errorf("the slot has %s keys, %v; want %s", count, err, want)
	}
}
