package k8s

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dispatchkit/dispatch/cluster"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func newStore(s *server) (*Store, *client) {
	c := s.client()
	return NewStore(c, namespace, StoreOptions{Logger: new(logbook).logger()}), c
}

func worker(id cluster.WorkerID) *cluster.Worker {
	return &cluster.Worker{
		ID: id, Hostname: "node-1", Queues: []string{"mail", "images"}, Concurrency: 8, State: cluster.StateActive,
		Capacity: cluster.Resources{"cpu": 2000}, Metadata: map[string]string{"zone": "a"},
	}
}

func register(t *testing.T, s *Store, ids ...cluster.WorkerID) {
	t.Helper()
	for _, id := range ids {
		if err := s.RegisterWorker(t.Context(), worker(id)); err != nil {
			t.Fatal(err)
		}
	}
}

func get(t *testing.T, s *Store, id cluster.WorkerID) *cluster.Worker {
	t.Helper()
	w, err := s.GetWorker(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func ids(workers []*cluster.Worker) string {
	var all []string
	for _, w := range workers {
		all = append(all, string(w.ID))
	}
	return strings.Join(all, " ")
}

func wantMissing(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, cluster.ErrWorkerNotFound) {
		t.Errorf("%s: %v, want ErrWorkerNotFound", what, err)
	}
}

func TestRegisterAndRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		s, _ := newStore(server)
		start := time.Now().UTC()
		w := worker("w-b")
		w.IsLeader, w.LastSeen = true, start.Add(time.Hour) // only read
		if err := s.RegisterWorker(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		want := worker("w-b")
		want.CreatedAt, want.LastSeen = start, start
		if got := get(t, s, "w-b"); !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
		// Again, without CreatedAt and with it.
		time.Sleep(time.Minute)
		w = worker("w-b")
		w.State, w.Concurrency = cluster.StateDraining, 3
		if err := s.RegisterWorker(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		got := get(t, s, "w-b")
		if !got.CreatedAt.Equal(start) || !got.LastSeen.Equal(start.Add(time.Minute)) ||
			got.State != cluster.StateDraining || got.Concurrency != 3 {
			t.Errorf("registered again: %+v", got)
		}
		w.CreatedAt = start.Add(-time.Hour)
		if err := s.RegisterWorker(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		if got := get(t, s, "w-b"); !got.CreatedAt.Equal(w.CreatedAt) {
			t.Errorf("CreatedAt %v, want %v", got.CreatedAt, w.CreatedAt)
		}
		// By ID, the own fleet only, whole rows only.
		register(t, s, "w-c", "w-a")
		register(t, NewStore(server.client(), namespace, StoreOptions{Prefix: "other"}), "w-d")
		register(t, s, "w-e")
		server.change("dispatch-worker-w-e", func(l *leaseT) { delete(l.Annotations, recordAnnotation) })
		server.took()
		all, err := s.ListWorkers(t.Context())
		if err != nil || ids(all) != "w-a w-b w-c" {
			t.Errorf("ListWorkers: %s, %v", ids(all), err)
		}
		if took := server.took(); took != "list" {
			t.Errorf("requests of a list: %s", took)
		}
		_, err = s.GetWorker(t.Context(), "w-e")
		wantMissing(t, "half a row", err)
		_, err = s.GetWorker(t.Context(), "w-f")
		wantMissing(t, "no row", err)
	})
}

func TestDeregister(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		s, _ := newStore(server)
		register(t, s, "w-a", "w-b")
		if won, err := s.AcquireLeadership(t.Context(), "w-a", time.Minute); !won || err != nil {
			t.Fatal(won, err)
		}
		for range 2 { // the second time there is no row
			if err := s.DeregisterWorker(t.Context(), "w-a"); err != nil {
				t.Error(err)
			}
		}
		if leader, err := s.GetLeader(t.Context()); leader != nil || err != nil {
			t.Errorf("leader %v, %v", leader, err)
		}
		wantMissing(t, "beat", s.HeartbeatWorker(t.Context(), "w-a"))
		if all, err := s.ListWorkers(t.Context()); ids(all) != "w-b" {
			t.Errorf("left: %s, %v", ids(all), err)
		}
		// Of one that does not lead, the leadership of another one stays.
		if won, err := s.AcquireLeadership(t.Context(), "w-c", time.Minute); !won || err != nil {
			t.Fatal(won, err)
		}
		if err := s.DeregisterWorker(t.Context(), "w-b"); err != nil {
			t.Error(err)
		}
		if leader, err := s.GetLeader(t.Context()); leader == nil || leader.ID != "w-c" {
			t.Errorf("leader %v, %v", leader, err)
		}
	})
}

func TestHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		s, c := newStore(server)
		register(t, s, "w-a")
		start := time.Now()
		server.took()
		for range 3 {
			time.Sleep(10 * time.Second)
			if err := s.HeartbeatWorker(t.Context(), "w-a"); err != nil {
				t.Fatal(err)
			}
		}
		if took := server.took(); took != "update update update" {
			t.Errorf("three beats took: %s", took)
		}
		if seen := get(t, s, "w-a").LastSeen; !seen.Equal(start.Add(30 * time.Second)) {
			t.Errorf("seen %v after registering", seen.Sub(start))
		}
		// Another process beats for it too; somebody sets a label; the answer is lost.
		other, _ := newStore(server)
		for range 3 {
			if err := errors.Join(other.HeartbeatWorker(t.Context(), "w-a"), s.HeartbeatWorker(t.Context(), "w-a")); err != nil {
				t.Error(err)
			}
		}
		server.change("dispatch-worker-w-a", func(l *leaseT) { l.Labels["team"] = "red" })
		if err := s.HeartbeatWorker(t.Context(), "w-a"); err != nil {
			t.Error(err)
		}
		if l := server.lease("dispatch-worker-w-a"); l.Labels["team"] != "red" {
			t.Errorf("labels %v", l.Labels)
		}
		lost := errors.New("the answer is lost")
		c.hook(nil, func(context.Context, string) error { return lost })
		if err := s.HeartbeatWorker(t.Context(), "w-a"); !errors.Is(err, lost) {
			t.Errorf("beat whose answer is lost: %v", err)
		}
		c.hook(nil, nil)
		if err := s.HeartbeatWorker(t.Context(), "w-a"); err != nil {
			t.Error(err)
		}
	})
}

func TestBeatResurrectsNothing(t *testing.T) {
	const name = "dispatch-worker-w-a"
	for what, ruin := range map[string]func(*server){
		"gone":    func(s *server) { s.remove(name) },
		"half":    func(s *server) { s.change(name, func(l *leaseT) { delete(l.Annotations, recordAnnotation) }) },
		"foreign": func(s *server) { s.change(name, func(l *leaseT) { *l.Spec.HolderIdentity = "w-b" }) },
		"dead": func(s *server) {
			s.change(name, func(l *leaseT) {
				l.Annotations[recordAnnotation] = strings.Replace(l.Annotations[recordAnnotation], "active", "dead", 1)
			})
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newServer()
				s, _ := newStore(server)
				register(t, s, "w-a")
				ruin(server)
				ruined := server.lease(name)
				for range 2 {
					time.Sleep(time.Second)
					wantMissing(t, "beat", s.HeartbeatWorker(t.Context(), "w-a"))
				}
				if left := server.lease(name); !reflect.DeepEqual(left, ruined) {
					t.Errorf("the beat made of it %v", left)
				}
				register(t, s, "w-a") // makes it whole
				if err := s.HeartbeatWorker(t.Context(), "w-a"); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestConflictsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		s, c := newStore(server)
		register(t, s, "w-a")
		c.hook(func(_ context.Context, verb string) error {
			if verb == "update" {
				server.change("dispatch-worker-w-a", func(*leaseT) {})
			}
			return nil
		}, nil)
		start := time.Now()
		if err := s.HeartbeatWorker(t.Context(), "w-a"); !isChange(err) {
			t.Errorf("beat: %v", err)
		}
		if took := time.Since(start); took == 0 || took > time.Second {
			t.Errorf("gave up after %v", took)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.RegisterWorker(ctx, worker("w-a")); !errors.Is(err, context.Canceled) {
			t.Errorf("with a context that has ended: %v", err)
		}
	})
}

func TestSettingsOfTheStore(t *testing.T) {
	server := newServer()
	for want, s := range map[string]*Store{
		"client is nil": NewStore(nil, namespace, StoreOptions{}),
		`namespace ""`:  NewStore(server.client(), "", StoreOptions{}),
		`Prefix: "A"`:   NewStore(server.client(), namespace, StoreOptions{Prefix: "A"}),
		"40 characters": NewStore(server.client(), namespace, StoreOptions{Prefix: strings.Repeat("a", 41)}),
	} {
		ctx := t.Context()
		errs := []error{
			s.RegisterWorker(ctx, worker("w-a")), s.DeregisterWorker(ctx, "w-a"), s.HeartbeatWorker(ctx, "w-a"),
		}
		add := func(_ any, err error) { errs = append(errs, err) }
		add(s.GetWorker(ctx, "w-a"))
		add(s.ListWorkers(ctx))
		add(s.ReapDeadWorkers(ctx, 0))
		add(s.DeleteStaleWorkers(ctx, 0))
		add(s.AcquireLeadership(ctx, "w-a", time.Second))
		add(s.RenewLeadership(ctx, "w-a", time.Second))
		add(s.GetLeader(ctx))
		if i := slices.IndexFunc(errs, func(err error) bool { return err == nil || !strings.Contains(err.Error(), want) }); i >= 0 {
			t.Errorf("method %d: got %v, want %q", i, errs[i], want)
		}
	}
	s, _ := newStore(server)
	if err := s.RegisterWorker(t.Context(), nil); err == nil {
		t.Error("a nil worker was registered")
	}
	if err := s.RegisterWorker(t.Context(), worker("W_1")); err == nil {
		t.Error("W_1 was registered")
	}
	if err := s.RegisterWorker(t.Context(), &cluster.Worker{ID: "w-a"}); err == nil {
		t.Error("a worker without a state was registered")
	}
	if _, err := s.AcquireLeadership(t.Context(), "w-a", 0); err == nil {
		t.Error("ttl 0 was taken")
	}
}

func TestPodIsAnnotated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: "pod-1", Namespace: namespace, Annotations: map[string]string{"mine": "1"},
		}})
		log := new(logbook)
		s := NewStore(server.client(), namespace, StoreOptions{PodName: "pod-1", Logger: log.logger()})
		show := func() string {
			a := server.pod(t, "pod-1").Annotations
			return a["mine"] + " " + a[podIDAnnotation] + " " + a[podStateAnnotation]
		}
		w := worker("w-a")
		for _, w.State = range []cluster.WorkerState{cluster.StateActive, cluster.StateDraining, cluster.StateDraining} {
			if err := s.RegisterWorker(t.Context(), w); err != nil {
				t.Fatal(err)
			}
			if got, want := show(), "1 w-a "+string(w.State); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		if err := s.DeregisterWorker(t.Context(), "w-a"); err != nil || show() != "1  " {
			t.Errorf("after Deregister: %q, %v", show(), err)
		}
		if log.text() != "" {
			t.Errorf("log: %s", log.text())
		}
		s = NewStore(server.client(), namespace, StoreOptions{PodName: "none", Logger: log.logger()})
		register(t, s, "w-a")
		if !strings.Contains(log.text(), "pod=none") {
			t.Errorf("log: %s", log.text())
		}
	})
}
