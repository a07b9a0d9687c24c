package redisstore

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/internal/redistest"
)

// A server that is full takes no task, and everything that makes it emptier works: workers drain it, and then it takes
// tasks again.
func TestFullServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--maxmemory-policy", "noeviction")
	client, err := openClient(t.Context(), server.URL())
	ok(t, err)
	defer client.Close()
	s := &testStore{Store: newTestStore(t, client, Options{}, "")}
	ctx := t.Context()
	payload := []byte(strings.Repeat("x", 10<<10))
	big := func(id string) dispatch.Submission {
		sub := namedTask(id)
		sub.Payload = payload
		return sub
	}
	var all []dispatch.Submission
	for i := range 60 {
		all = append(all, big(fmt.Sprintf("t%02d", i)))
	}
	enqueue(t, s, all...)
	put(t, s, "u1", "u2")
	fill := func() {
		t.Helper()
		_, err := server.Command("CONFIG", "SET", "maxmemory", "1mb") // less than an empty server has
		ok(t, err)
	}
	fill()

	before, err := s.Counts(ctx, mail)
	ok(t, err)
	_, err = s.Enqueue(ctx, mail, []dispatch.Submission{big("new"), task("small")}, dispatch.EnqueueOptions{})
	if !errors.Is(err, dispatch.ErrStoreFull) || errors.Is(err, dispatch.ErrUncertain) {
		t.Errorf("enqueue: got %v", err)
	}
	_, err = s.Enqueue(ctx, "other", []dispatch.Submission{task("small")}, dispatch.EnqueueOptions{})
	if !errors.Is(err, dispatch.ErrStoreFull) {
		t.Errorf("enqueue to a new queue: got %v", err)
	}
	if _, err := s.CreateQueue(ctx, dispatch.Queue{Name: "other"}); !errors.Is(err, dispatch.ErrStoreFull) {
		t.Errorf("create: got %v", err)
	}
	if after, err := s.Counts(ctx, mail); err != nil || after != before {
		t.Errorf("counts %+v, before %+v, %v", after, before, err)
	}
	sound(t, s, mail)
	if _, err := New(client, Options{Prefix: "another", Logger: quiet}); err != nil {
		t.Errorf("a full server cannot be worked on: %v", err)
	}

	// Whatever drains goes on, and so does what it needs.
	leased := claim(t, s, alice, 1, 10).Leased
	if len(leased) != 10 {
		t.Fatalf("claimed %s", ids(leased))
	}
	again := claimRequest(alice, 1, 10)
	again.Repeat = true
	if r, err := s.Claim(ctx, again); err != nil || ids(r.Leased) != ids(leased) {
		t.Errorf("claimed again: %s, %v", ids(r.Leased), err)
	}
	moved, err := s.Extend(ctx, mail, []dispatch.Extension{{ID: leased[0].Task.ID, Lease: leased[0].Lease, For: time.Hour}})
	if err != nil || !moved[0] {
		t.Errorf("extend: %v, %v", moved, err)
	}
	for i, outcome := range []dispatch.Outcome{dispatch.Succeeded, dispatch.Retry, dispatch.Dead, dispatch.Released} {
		r := settleRequest(int64(i+1), outcome, time.Hour, leased[i])
		r.Items[0].Tombstone = time.Hour
		r.Items[0].Progress = &dispatch.Progress{Attempts: 1}
		if reply, err := s.Settle(ctx, r); err != nil || !reply.Applied[0] {
			t.Errorf("%s: %+v, %v", outcome, reply, err)
		}
	}
	if ended, err := s.Await(ctx, mail, []dispatch.TaskID{leased[0].Task.ID, leased[4].Task.ID}); err != nil || len(ended) != 1 {
		t.Errorf("await: %v, %v", ended, err)
	}
	ok(t, s.EditTask(ctx, mail, leased[1].Task.ID, func(t *dispatch.Task) error { t.Payload = append(t.Payload, payload...); return nil }))
	if r, err := s.ReplayTasks(ctx, mail, []dispatch.Replay{{ID: leased[2].Task.ID, NewID: "replayed"}}); err != nil || !r.Replayed[0] {
		t.Errorf("replay: %+v, %v", r, err)
	}
	remove(t, s, time.Hour, leased[4].Task.ID)
	q, err := s.Queue(ctx, mail)
	ok(t, err)
	if replaced, err := s.ReplaceQueue(ctx, *q); err != nil || !replaced {
		t.Errorf("replace: %v, %v", replaced, err)
	}
	ok(t, s.SetState(ctx, mail, dispatch.QueuePaused))
	ok(t, s.SetState(ctx, mail, dispatch.QueueRunning))
	ok(t, s.Announce(ctx, []dispatch.Hint{{Queue: mail}}))
	_, err = s.Rest(ctx, []dispatch.Hint{{Queue: mail, Wait: -1}})
	ok(t, err)
	if hints, err := s.Hints(ctx, 0); err != nil || len(hints) != 1 {
		t.Errorf("hints: %v, %v", hints, err)
	}
	_, err = s.Look(ctx, []string{mail})
	ok(t, err)
	_, err = s.Cleanup(ctx, mail, 10)
	ok(t, err)
	empty := claimRequest(bob, 1, 1)
	empty.Repeat = true
	if r, err := s.Claim(ctx, empty); err != nil || len(r.Leased) != 1 {
		t.Errorf("claimed: %v, %v", r, err)
	}
	sound(t, s, mail)
	ok(t, s.PurgeQueue(ctx, mail, time.Hour))
	settle(t, s, dispatch.Retry, 0, leased[5:]...)
	sound(t, s, mail)
	if c, err := s.Counts(ctx, mail); err != nil || c.Ready+c.Scheduled != 0 {
		t.Errorf("counts after the purge: %+v, %v", c, err)
	}

	// Empty again.
	_, err = server.Command("CONFIG", "SET", "maxmemory", "0")
	ok(t, err)
	if r := enqueue(t, s, big("new"), task("small")); r.Duplicate[0] || r.Duplicate[1] {
		t.Errorf("got %+v", r)
	}
	if got := ids(claim(t, s, alice, 2, 10).Leased); got != "new small " {
		t.Errorf("claimed %q", got)
	}
	fill()
	ok(t, s.DeleteQueue(ctx, mail))
	sound(t, s, mail)
}

// Memory that is short on the way through a script does not cut it in two: a limit that is crossed by one call refuses
// the next.
func TestServerFillsUp(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--maxmemory-policy", "noeviction")
	client, err := openClient(t.Context(), server.URL())
	ok(t, err)
	defer client.Close()
	s := &testStore{Store: newTestStore(t, client, Options{}, "")}
	used, err := server.Command("INFO", "memory")
	ok(t, err)
	n, err := strconv.Atoi(infoField(used, "used_memory"))
	ok(t, err)
	_, err = server.Command("CONFIG", "SET", "maxmemory", strconv.Itoa(n+2<<20))
	ok(t, err)
	stored := 0
	for i := 0; ; i++ {
		var batch []dispatch.Submission
		for j := range 50 {
			sub := task(fmt.Sprintf("t%03d-%02d", i, j))
			sub.Payload = make([]byte, 4<<10)
			batch = append(batch, sub)
		}
		_, err := s.Enqueue(t.Context(), mail, batch, dispatch.EnqueueOptions{})
		if errors.Is(err, dispatch.ErrStoreFull) {
			break
		}
		ok(t, err)
		if stored += len(batch); i > 100 {
			t.Fatal("the server does not fill up")
		}
		sound(t, s, mail)
	}
	sound(t, s, mail)
	for seq := int64(1); stored > 0; seq++ {
		leased := claim(t, s, alice, seq, 100).Leased
		if len(leased) == 0 {
			t.Fatalf("%d tasks are left and nothing is leased", stored)
		}
		stored -= len(leased)
		settle(t, s, dispatch.Succeeded, 0, leased...)
	}
	sound(t, s, mail)
	put(t, s, "again")
}
