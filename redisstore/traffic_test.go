package redisstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/cluster"
)

// TestAdministrationUnderTraffic has workers and producers on one queue while operators do to it all that there is, each with a
// client of his own, some of whose answers get lost. Afterwards nothing is leased, every task that was acknowledged is where the
// answers say, or gone once, and the counters agree. DISPATCH_TEST_SEED=… makes the same calls, though not at the same moments.
func TestAdministrationUnderTraffic(t *testing.T) {
	t.Parallel()
	for _, b := range backends(t) {
		if b.name != "redis" && b.name != "masters" {
			continue // real ones; what a strict one refuses other tests find
		}
		for name, purges := range map[string]bool{"all tasks stay known": false, "with purges": true} {
			t.Run(b.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				underTraffic(t, b, purges)
			})
		}
	}
}

const (
	producers      = 2
	trafficWorkers = 3
	callsEach      = 20  // of each operator
	backlog        = 100 // tasks that wait; with more the producers pause
)

// traffic is one run.
type traffic struct {
	t      *testing.T
	ctx    context.Context
	ledger *trafficLedger
	first  *testStore
	seed   uint64
	actors uint64
}

func underTraffic(t *testing.T, b backend, purges bool) {
	seed, _ := strconv.ParseUint(os.Getenv("DISPATCH_TEST_SEED"), 10, 64)
	if seed == 0 {
		seed = rand.Uint64() >> 1
	}
	t.Logf("seed %d", seed)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	run := &traffic{t: t, ctx: ctx, ledger: newTrafficLedger(), first: b.open(t), seed: seed}
	_, err := run.first.CreateQueue(ctx, dispatch.Queue{Name: mail})
	ok(t, err)

	// All are there before the first begins.
	var operating, producing, working sync.WaitGroup
	operated, produced := make(chan struct{}), make(chan struct{})
	var all []func()
	for _, operate := range run.operators(purges) {
		a := run.actor()
		all = append(all, func() {
			operating.Go(func() {
				for range callsEach {
					operate(a)
				}
			})
		})
	}
	for i := range producers {
		a := run.actor()
		all = append(all, func() { producing.Go(func() { a.produce(i, operated) }) })
	}
	for i := range trafficWorkers {
		a := run.actor()
		all = append(all, func() { working.Go(func() { a.work(cluster.WorkerID(fmt.Sprint("w-", i)), produced) }) })
	}
	for _, begin := range all {
		begin()
	}
	operating.Wait()
	close(operated)
	producing.Wait()
	close(produced)
	working.Wait()
	if ctx.Err() != nil {
		t.Fatal("it has not ended within a minute")
	}
	run.check()
}

// check looks at what is left, and then has all of it worked off.
func (run *traffic) check() {
	t, s := run.t, run.first
	sound(t, s, mail)
	counts, err := s.Counts(run.ctx, mail)
	ok(t, err)
	if counts.Running != 0 {
		t.Errorf("%d tasks are leased, and nobody works", counts.Running)
	}
	there := make(map[dispatch.TaskID]dispatch.TaskState)
	for state, ids := range run.list(s) {
		for _, id := range ids {
			if other := there[id]; other != "" && other != state {
				t.Errorf("task %s is %s and %s", id, other, state)
			}
			there[id] = state
		}
	}
	if n := counts.Ready + counts.Scheduled + counts.Succeeded + counts.Dead + counts.Cancelled; n != int64(len(there)) {
		t.Errorf("%d tasks are listed, and counted %+v", len(there), counts)
	}
	run.ledger.check(t, there, counts)

	ok(t, s.SetState(run.ctx, mail, dispatch.QueueRunning))
	q, err := s.Queue(run.ctx, mail)
	ok(t, err)
	q.Rate, q.MaxConcurrent = 0, 0
	_, err = s.ReplaceQueue(run.ctx, *q)
	ok(t, err)
	s.advance(time.Hour)
	for seq := int64(1); ; seq++ {
		leased := claim(t, s, "w-last", seq, 100).Leased
		if len(leased) == 0 {
			break
		}
		for _, l := range leased {
			if there[l.Task.ID] != dispatch.TaskWaiting {
				t.Errorf("task %s was %s and was leased", l.Task.ID, there[l.Task.ID])
			}
			delete(there, l.Task.ID)
		}
		settle(t, s, dispatch.Succeeded, 0, leased...)
	}
	for id, state := range there {
		if state == dispatch.TaskWaiting {
			t.Errorf("task %s waits and is not handed out", id)
		}
	}
	sound(t, s, mail)
}

// list reads all tasks by their states.
func (run *traffic) list(s *testStore) map[dispatch.TaskState][]dispatch.TaskID {
	all := make(map[dispatch.TaskState][]dispatch.TaskID)
	for _, state := range []dispatch.TaskState{dispatch.TaskWaiting, dispatch.TaskRunning, dispatch.TaskSucceeded, dispatch.TaskDead, dispatch.TaskCancelled} {
		for cursor, more := "", true; more; more = cursor != "" {
			page, next, err := s.Tasks(run.ctx, mail, state, cursor)
			if err != nil {
				run.t.Errorf("tasks: %v", err)
				return all
			}
			for _, task := range page {
				all[state] = append(all[state], task.ID)
			}
			cursor = next
		}
	}
	return all
}

// actor is somebody with a client of his own.
type actor struct {
	*traffic
	*rand.Rand
	s   *testStore
	seq int64 // of the sweeper's settles
}

// actor makes one, some of whose answers get lost: one in eight, after the command has run.
func (run *traffic) actor() *actor {
	run.actors++
	losing, luck := sync.Mutex{}, rand.New(rand.NewPCG(run.seed, 1000+run.actors))
	s := run.first.another(run.t, hook(func(ctx context.Context, script string, cmd redis.Cmder, next redis.ProcessHook) error {
		err := next(ctx, cmd)
		if script == "purge" && err == nil {
			run.ledger.purge()
		}
		losing.Lock()
		defer losing.Unlock()
		if err == nil && luck.IntN(8) == 0 {
			cmd.SetErr(io.EOF)
			return io.EOF
		}
		return err
	}))
	return &actor{traffic: run, Rand: rand.New(rand.NewPCG(run.seed, run.actors)), s: s}
}

// ok reports what nobody expects; it says whether there was no error at all.
func (a *actor) ok(what string, err error, expected ...error) bool {
	for _, e := range expected {
		if errors.Is(err, e) {
			return false
		}
	}
	if err != nil {
		a.t.Errorf("%s: %v", what, err)
	}
	return err == nil
}

func (a *actor) after() time.Duration { return time.Duration(a.IntN(3)) * time.Second }

// produce stores tasks as long as operators do something, and there are not too many.
func (a *actor) produce(producer int, operated <-chan struct{}) {
	for n := 0; a.ctx.Err() == nil; {
		select {
		case <-operated:
			return
		default:
		}
		c, err := a.s.Counts(a.ctx, mail)
		if !a.ok("counts", err) {
			return
		}
		if c.Ready+c.Scheduled > backlog {
			continue
		}
		var batch []dispatch.Submission
		for range 1 + a.IntN(6) {
			s := task(fmt.Sprintf("p%d-%d", producer, n))
			s.Named, s.Nonce, s.Delay = a.IntN(2) == 0, a.Uint64(), a.after()
			s.Payload = make([]byte, a.IntN(3000)) // some calls travel with others and some do not
			a.ledger.begin(s.ID)
			batch = append(batch, s)
			n++
		}
		r, err := a.s.Enqueue(a.ctx, mail, batch, dispatch.EnqueueOptions{})
		if !a.ok("enqueue", err) {
			return
		}
		for i, s := range batch {
			a.ledger.store(s.ID, r.Duplicate[i])
		}
	}
}

// work claims and settles until nobody else does anything, and then what it holds.
func (a *actor) work(w cluster.WorkerID, produced <-chan struct{}) {
	var held []dispatch.Leased
	for seq := int64(1); a.ctx.Err() == nil; seq++ {
		select {
		case <-produced:
			a.settle(w, seq, held)
			return
		default:
		}
		request := claimRequest(w, seq, 1+a.IntN(10))
		reply, err := a.s.Claim(a.ctx, request)
		for errors.Is(err, dispatch.ErrUncertain) && a.ctx.Err() == nil {
			request.Repeat = true
			reply, err = a.s.Claim(a.ctx, request)
		}
		if !a.ok("claim", err) {
			return
		}
		for _, l := range reply.Leased {
			a.ledger.lease(w, seq, l)
		}
		held = append(held, reply.Leased...)
		n := a.IntN(len(held) + 1)
		if n > 0 && a.IntN(4) == 0 {
			_, err := a.s.Extend(a.ctx, mail, []dispatch.Extension{{ID: held[0].Task.ID, Lease: held[0].Lease, For: lease}})
			a.ok("extend", err)
		}
		a.settle(w, seq, held[:n])
		held = held[n:]
	}
}

func (a *actor) settle(w cluster.WorkerID, seq int64, leased []dispatch.Leased) {
	if len(leased) == 0 {
		return
	}
	r := dispatch.SettleRequest{Queue: mail, Worker: w, Seq: seq}
	for _, l := range leased {
		s := dispatch.Settlement{ID: l.Task.ID, Lease: l.Lease, After: a.after(), GivenBack: a.IntN(2) == 0,
			Outcome: []dispatch.Outcome{dispatch.Succeeded, dispatch.Succeeded, dispatch.Retry, dispatch.Dead, dispatch.Released}[a.IntN(5)]}
		if a.IntN(2) == 0 {
			s.Progress = &dispatch.Progress{Attempts: l.Progress.Attempts + 1}
		}
		if s.Outcome == dispatch.Succeeded || s.Outcome == dispatch.Dead {
			s.After = []time.Duration{0, 24 * time.Hour}[a.IntN(2)]
			s.Tombstone = time.Duration(a.IntN(2)) * time.Hour
		}
		r.Items = append(r.Items, s)
	}
	a.send(r)
}

// send settles, and notes what has come of it.
func (a *actor) send(r dispatch.SettleRequest) {
	stale := a.ledger.stale(r.Items)
	reply, err := a.s.Settle(a.ctx, r)
	if a.ok("settle", err) {
		a.ledger.settled(r.Items, stale, reply)
	}
}
