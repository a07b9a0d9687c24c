package redisstore

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/cluster"
	"github.com/dispatchkit/dispatch/internal/redistest"
)

// workOnFleet calls every method of registry and leadership.
func workOnFleet(t testing.TB, s *testStore) {
	t.Helper()
	ctx := t.Context()
	ok(t, s.RegisterWorker(ctx, &cluster.Worker{ID: alice, Concurrency: 1}))
	ok(t, s.HeartbeatWorker(ctx, alice))
	if won, err := s.AcquireLeadership(ctx, alice, time.Minute); err != nil || !won {
		t.Fatalf("acquired: %v, %v", won, err)
	}
	if held, err := s.RenewLeadership(ctx, alice, time.Minute); err != nil || !held {
		t.Fatalf("renewed: %v, %v", held, err)
	}
	term, err := s.BeginTerm(ctx, alice)
	ok(t, err)
	ok(t, s.PublishPlan(ctx, &cluster.Plan{Term: term, Workers: []cluster.PlanWorker{{ID: alice}}}))
	p, err := s.Plan(ctx)
	ok(t, err)
	if p == nil || p.Term != term {
		t.Fatalf("plan: %+v", p)
	}
	all, err := s.ListWorkers(ctx)
	ok(t, err)
	if len(all) != 1 || !all[0].IsLeader {
		t.Fatalf("workers: %+v", all)
	}
	leaderIs(t, s, alice)
	_, err = s.ReapDeadWorkers(ctx, time.Hour)
	ok(t, err)
	_, err = s.DeleteStaleWorkers(ctx, time.Hour)
	ok(t, err)
	// A worker of long ago, so that something is reaped and swept.
	ok(t, s.RegisterWorker(ctx, &cluster.Worker{ID: bob}))
	ok(t, s.client.ZAdd(ctx, s.workersKey(), redis.Z{Score: 1, Member: string(bob)}).Err())
	if dead, err := s.ReapDeadWorkers(ctx, time.Hour); err != nil || len(dead) != 1 {
		t.Fatalf("dead: %v, %v", dead, err)
	}
	if n, err := s.DeleteStaleWorkers(ctx, time.Hour); err != nil || n != 1 {
		t.Fatalf("deleted: %d, %v", n, err)
	}
	ok(t, s.DeregisterWorker(ctx, alice))
	leaderIs(t, s, "")
}

// A row has two halves, and either may be gone: by its time to live, or with what a failover has lost.
func TestHalfARow(t *testing.T) {
	onTwo(t, func(t *testing.T, b backend) {
		for half, cut := range map[string]func(s *testStore) error{
			"no key":    func(s *testStore) error { return s.client.Del(t.Context(), s.workerKey(alice)).Err() },
			"no record": func(s *testStore) error { return s.client.HDel(t.Context(), s.workerKey(alice), "record").Err() },
			"no state":  func(s *testStore) error { return s.client.HDel(t.Context(), s.workerKey(alice), "state").Err() },
			"no index":  func(s *testStore) error { return s.client.ZRem(t.Context(), s.workersKey(), string(alice)).Err() },
		} {
			s := b.open(t)
			ctx := t.Context()
			broken := func() {
				t.Helper()
				ok(t, s.RegisterWorker(ctx, &cluster.Worker{ID: bob}))
				ok(t, s.RegisterWorker(ctx, &cluster.Worker{ID: alice}))
				ok(t, cut(s))
			}
			absent := func() {
				t.Helper()
				if _, err := s.GetWorker(ctx, alice); !errors.Is(err, cluster.ErrWorkerNotFound) {
					t.Errorf("%s: got %v", half, err)
				}
				if all, err := s.ListWorkers(ctx); err != nil || len(all) != 1 || all[0].ID != bob {
					t.Errorf("%s: listed %v, %v", half, all, err)
				}
			}
			nothingLeft := func() {
				t.Helper()
				if n := s.client.Exists(ctx, s.workerKey(alice)).Val(); n != 0 {
					t.Errorf("%s: the row is left", half)
				}
				if n := s.client.ZCard(ctx, s.workersKey()).Val(); n != 1 {
					t.Errorf("%s: %d in the index", half, n)
				}
			}
			broken()
			absent()
			for range 2 {
				if err := s.HeartbeatWorker(ctx, alice); !errors.Is(err, cluster.ErrWorkerNotFound) {
					t.Errorf("%s: beat: got %v", half, err)
				}
				nothingLeft()
			}
			broken()
			ok(t, s.RegisterWorker(ctx, &cluster.Worker{ID: alice}))
			ok(t, s.HeartbeatWorker(ctx, alice))
			broken()
			s.advance(time.Minute)
			ok(t, s.HeartbeatWorker(ctx, bob))
			if dead, err := s.ReapDeadWorkers(ctx, time.Second); err != nil || len(dead) != 0 {
				t.Errorf("%s: dead %v, %v", half, dead, err)
			}
			absent()
			if _, err := s.DeleteStaleWorkers(ctx, time.Second); err != nil {
				t.Error(err)
			}
			if half != "no index" { // nobody finds it, until its time to live is over
				nothingLeft()
			}
			if life := s.client.PTTL(ctx, s.workerKey(bob)).Val(); life < 23*time.Hour {
				t.Errorf("%s: a row lives %v", half, life)
			}
		}
	})
}

// A reaping whose answer was lost has still to say whom it has marked.
func TestLostAnswerOfReap(t *testing.T) {
	onTwo(t, func(t *testing.T, b backend) {
		s, f := flaky(t, b)
		ok(t, s.RegisterWorker(t.Context(), &cluster.Worker{ID: alice}))
		s.advance(time.Minute)
		f.plan("worker_reap", lostReply, lostReply)
		dead, err := s.ReapDeadWorkers(t.Context(), time.Second)
		if err != nil || len(dead) != 1 || dead[0].ID != alice {
			t.Errorf("dead %v, %v", dead, err)
		}
		if dead, err := s.ReapDeadWorkers(t.Context(), time.Second); err != nil || len(dead) != 0 {
			t.Errorf("dead again %v, %v", dead, err)
		}
	})
}

// A beat between the look for stale workers and what is done with them counts.
func TestBeatWhileOthersReap(t *testing.T) {
	onTwo(t, func(t *testing.T, b backend) {
		s, f := flaky(t, b)
		ctx := t.Context()
		ok(t, s.RegisterWorker(ctx, &cluster.Worker{ID: alice}))
		beat := fault{do: func() { ok(t, s.HeartbeatWorker(ctx, alice)) }}
		s.advance(time.Minute)
		f.plan("worker_reap", beat)
		if dead, err := s.ReapDeadWorkers(ctx, time.Second); err != nil || len(dead) != 0 {
			t.Errorf("dead %v, %v", dead, err)
		}
		s.advance(time.Minute)
		f.plan("worker_sweep", beat)
		if n, err := s.DeleteStaleWorkers(ctx, time.Second); err != nil || n != 0 {
			t.Errorf("deleted %d, %v", n, err)
		}
		ok(t, s.HeartbeatWorker(ctx, alice))
	})
}

// A worker whose record a newer program has written is there all the same.
func TestRowOfANewerProgram(t *testing.T) {
	onTwo(t, func(t *testing.T, b backend) {
		s := b.open(t)
		ctx := t.Context()
		ok(t, s.RegisterWorker(ctx, &cluster.Worker{ID: alice, Concurrency: 5}))
		ok(t, s.client.HSet(ctx, s.workerKey(alice), "record", "\x02new").Err())
		w, err := s.GetWorker(ctx, alice)
		ok(t, err)
		want := cluster.Worker{ID: alice, State: cluster.StateActive, LastSeen: w.LastSeen, CreatedAt: w.CreatedAt}
		if !reflect.DeepEqual(*w, want) || w.LastSeen.IsZero() {
			t.Errorf("got %+v", *w)
		}
		ok(t, s.HeartbeatWorker(ctx, alice))

		ok(t, s.client.Set(ctx, s.planKey(), "\x021 1 new", 0).Err())
		if p, err := s.Plan(ctx); p != nil || err != nil {
			t.Errorf("plan %v, %v", p, err)
		}
		ok(t, s.client.Set(ctx, s.planKey(), "\x011 1 ", 0).Err())
		if p, err := s.Plan(ctx); p != nil || !errors.Is(err, errMalformed) {
			t.Errorf("plan %v, %v", p, err)
		}
	})
}

func FuzzDecodeWorker(f *testing.F) {
	good, err := encodeWorker(&cluster.Worker{ID: alice, Hostname: "h", Queues: []string{"a", "b"}, Concurrency: 3,
		Capacity: cluster.Resources{"cpu": 1}, Metadata: map[string]string{"a": "b"}})
	ok(f, err)
	f.Add(good)
	seedBodies(f, func(body string) { f.Add("\x01" + body) })
	f.Fuzz(func(t *testing.T, record string) {
		var first, second cluster.Worker
		if decodeWorker(record, &first) != nil {
			return
		}
		again, err := encodeWorker(&first)
		if err != nil {
			return // larger than may be
		}
		ok(t, decodeWorker(again, &second))
		if third, err := encodeWorker(&second); err != nil || third != again {
			t.Errorf("%q is written %q, then %q, %v", record, again, third, err)
		}
	})
}

func FuzzDecodePlan(f *testing.F) {
	good, err := encodePlan(&cluster.Plan{Term: 5, Revision: 7, Spread: map[string]int{"mail": 2},
		Workers: []cluster.PlanWorker{{ID: alice, Queues: []string{"mail"}, Concurrency: 3}, {ID: bob}}})
	ok(f, err)
	f.Add(good)
	f.Add("\x01")
	f.Add("\x01-1 -1 \x80")
	f.Add("\x015 6 \x81\x01\x91\x94\xa1a\x90\x01\x02")
	seedBodies(f, func(body string) { f.Add("\x011 2 " + body) })
	f.Fuzz(func(t *testing.T, plan string) {
		first, err := decodePlan(plan)
		if err != nil {
			if !errors.Is(err, errMalformed) {
				t.Errorf("%q: %v", plan, err)
			}
			return
		}
		again, err := encodePlan(first)
		if err != nil {
			return // no term of a leader, or larger than may be
		}
		second, err := decodePlan(again)
		ok(t, err)
		if third, err := encodePlan(second); err != nil || third != again {
			t.Errorf("%q is written %q, then %q, %v", plan, again, third, err)
		}
	})
}

func TestPlanTooLarge(t *testing.T) {
	t.Parallel()
	_, err := encodePlan(&cluster.Plan{Term: 1, Spread: map[string]int{strings.Repeat("x", maxPlanBytes): 1}})
	if err == nil {
		t.Error("accepted")
	}
}

// On a full server workers come, beat and go, for they are what drains it; the leader stays, and nobody new is elected.
func TestFleetOnAFullServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--maxmemory-policy", "noeviction")
	client, err := openClient(t.Context(), server.URL())
	ok(t, err)
	defer client.Close()
	s := &testStore{Store: newTestStore(t, client, Options{}, "")}
	ctx := t.Context()
	if won, err := s.AcquireLeadership(ctx, alice, time.Minute); err != nil || !won {
		t.Fatal(won, err)
	}
	_, err = server.Command("CONFIG", "SET", "maxmemory", "1mb") // less than an empty server has
	ok(t, err)
	for _, id := range []cluster.WorkerID{alice, bob} {
		ok(t, s.RegisterWorker(ctx, &cluster.Worker{ID: id, Metadata: map[string]string{"x": strings.Repeat("x", 10<<10)}}))
		ok(t, s.HeartbeatWorker(ctx, id))
	}
	if held, err := s.RenewLeadership(ctx, alice, time.Minute); err != nil || !held {
		t.Errorf("renewed: %v, %v", held, err)
	}
	term, err := s.BeginTerm(ctx, alice)
	ok(t, err)
	ok(t, s.PublishPlan(ctx, &cluster.Plan{Term: term}))
	eventually(t, "a millisecond", func() bool {
		dead, err := s.ReapDeadWorkers(ctx, 0)
		ok(t, err)
		return len(dead) > 0
	})
	ok(t, s.DeregisterWorker(ctx, alice))
	if _, err := s.AcquireLeadership(ctx, bob, time.Minute); !errors.Is(err, dispatch.ErrStoreFull) {
		t.Errorf("acquired: %v", err)
	}
	_, err = s.DeleteStaleWorkers(ctx, 0)
	ok(t, err)
}
