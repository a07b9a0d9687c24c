package storetest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/cluster"
)

// RandomOptions choose a random run.
type RandomOptions struct {
	// Seed decides everything that the run does. 0 takes the one in the environment variable DISPATCH_TEST_SEED, or a
	// new one; the test's log says which.
	Seed uint64
	// Steps is how many operations there are; 0 means 300.
	Steps int
	// Limits changes the queue's rate and concurrency now and then.
	Limits bool
	// Repeat makes every other call twice, at once or later, as a client does that got no answer.
	Repeat bool
}

// Random drives a store with random operations of several workers, and a model with the same. After every step all that
// can be seen of the store must be as in the model, and the invariants must hold.
func Random(t *testing.T, h Harness, o RandomOptions) {
	if o.Seed == 0 {
		o.Seed, _ = strconv.ParseUint(os.Getenv("DISPATCH_TEST_SEED"), 10, 64)
	}
	for o.Seed == 0 {
		o.Seed = rand.Uint64() >> 1
	}
	if o.Steps == 0 {
		o.Steps = 300
	}
	t.Logf("seed %d", o.Seed)
	e := newEnv(t, h)
	r := &random{
		env: e, Rand: rand.New(rand.NewPCG(o.Seed, 0)), model: newModel(), opts: o, start: e.now(),
		claims: make(map[cluster.WorkerID]*sentClaim),
	}
	defer func() {
		if t.Failed() {
			t.Logf("seed %d; the last steps:\n%s", o.Seed, strings.Join(r.trace[max(0, len(r.trace)-40):], "\n"))
		}
	}()
	for range o.Steps {
		r.step()
		r.compare()
		if t.Failed() {
			return
		}
	}
}

// random is one run.
type random struct {
	*env
	*rand.Rand
	model *model
	opts  RandomOptions
	start time.Time
	trace []string

	given   []dispatch.Leased // leases of all times, most of them stale
	claims  map[cluster.WorkerID]*sentClaim
	settles []sentSettle
	nonce   uint64
	newIDs  int // generated for replays
	last    []dispatch.Submission
}

// sentClaim is a worker's last claim that the store has to remember.
type sentClaim struct {
	request dispatch.ClaimRequest
	leased  []dispatch.Leased
	at      time.Duration
}

type sentSettle struct {
	request dispatch.SettleRequest
	applied []bool
	at      time.Duration
}

// remembered is how long after a call it may be repeated.
const remembered = 30 * time.Second

var workers = []cluster.WorkerID{alice, bob, "w-carol"}

func pick[T any](r *random, from []T) T { return from[r.IntN(len(from))] }

func (r *random) did(format string, args ...any) {
	r.trace = append(r.trace, fmt.Sprintf("%v %s", r.model.now, fmt.Sprintf(format, args...)))
}

// millis is a whole number of milliseconds below limit, often none at all.
func (r *random) millis(limit time.Duration) time.Duration {
	if r.IntN(3) == 0 {
		return 0
	}
	return time.Duration(r.Int64N(limit.Milliseconds())) * time.Millisecond
}

// often says yes to a call that may be made twice.
func (r *random) often() bool { return r.opts.Repeat && r.IntN(2) == 0 }

func (r *random) step() {
	steps := []struct {
		weight int
		run    func()
	}{
		{25, r.enqueueSome}, {25, r.claimSome}, {25, r.settleSome}, {10, r.pass}, {5, r.extendSome}, {5, r.sweepSome},
		{3, r.deleteSome}, {5, r.replaySome}, {3, r.runSome}, {3, r.cancelSome}, {5, r.editSome}, {2, r.purgeAll}, {2, r.pause},
		{3, r.cleanupAll}, {1, r.deleteAll},
	}
	if r.opts.Limits {
		steps = append(steps, struct {
			weight int
			run    func()
		}{4, r.changeLimits})
	}
	if r.opts.Repeat {
		steps = append(steps, struct {
			weight int
			run    func()
		}{15, r.repeatOld})
	}
	total := 0
	for _, s := range steps {
		total += s.weight
	}
	n := r.IntN(total)
	for _, s := range steps {
		if n -= s.weight; n < 0 {
			s.run()
			return
		}
	}
}

func (r *random) enqueueSome() {
	var batch []dispatch.Submission
	for range 1 + r.IntN(5) {
		r.nonce++
		s := submit(fmt.Sprintf("t%02d", r.IntN(25)), after(r.millis(20*time.Second)), sized(r.IntN(3)))
		first := slices.IndexFunc(batch, func(other dispatch.Submission) bool { return other.ID == s.ID })
		if r.IntN(2) == 0 || first >= 0 {
			named(r.nonce)(&s)
		}
		if first < 0 || batch[first].Named { // an ID that was generated comes once in a call
			batch = append(batch, s)
		}
	}
	r.last = batch
	r.submitBatch(batch)
	for r.often() {
		r.submitBatch(batch)
	}
}

func (r *random) submitBatch(batch []dispatch.Submission) {
	var ids []string
	for _, s := range batch {
		ids = append(ids, fmt.Sprintf("%s+%v/%d", s.ID, s.Delay, s.Nonce))
	}
	r.did("enqueue %v", ids)
	equal(r.env, "enqueue", r.enqueue(batch...), r.model.enqueue(batch))
}

func (r *random) claimSome() {
	w := pick(r, workers)
	request := r.request(w, 1+r.IntN(6))
	request.Repeat = r.often()
	r.did("claim %s #%d budget %d repeat %v", w, request.Seq, request.Budget, request.Repeat)
	if !r.model.exists {
		_, err := r.store.Claim(r.ctx, request)
		r.fails("claim", err, dispatch.ErrQueueNotFound)
		return
	}
	ready := r.model.ready()
	n, block, wait := r.model.claim(request.Budget)
	reply := r.send(request)
	equal(r.env, "leased", len(reply.Leased), n)
	equal(r.env, "block", reply.Block, block)
	equal(r.env, "wait", reply.Wait, wait)
	if r.Failed() {
		return
	}
	for i, l := range reply.Leased {
		t := r.model.tasks[string(l.Task.ID)]
		if t == nil || t.state != dispatch.TaskWaiting || t.rank() != ready[i].rank() {
			r.Fatalf("task %s was leased, which is %+v", l.Task.ID, t)
		}
		r.leasedAs(l, t)
	}
	for _, l := range slices.SortedFunc(slices.Values(reply.Leased), byToken) {
		if l.Lease.Token <= r.model.lastToken {
			r.Errorf("token %d after %d", l.Lease.Token, r.model.lastToken)
		}
		r.model.lastToken = l.Lease.Token
	}
	r.model.leased(reply.Leased)
	next, leaseEnd := r.model.waits()
	r.sameWait("next", reply.Next, next)
	r.sameWait("lease end", reply.LeaseEnd, leaseEnd)
	r.given = append(r.given, reply.Leased...)
	if n > 0 || request.Repeat {
		r.claims[w] = &sentClaim{request: request, leased: reply.Leased, at: r.model.now}
	}
	for r.often() && r.claims[w] != nil && r.claims[w].request.Seq == request.Seq {
		r.repeatClaim(r.claims[w])
	}
}

func byToken(a, b dispatch.Leased) int { return int(a.Lease.Token - b.Lease.Token) }

func (r *random) sameWait(what string, got, want time.Duration) {
	r.Helper()
	if want < 0 {
		r.never(what, got)
		return
	}
	equal(r.env, what, got, want)
}

// leasedAs compares what a lease brings along.
func (r *random) leasedAs(l dispatch.Leased, t *modelTask) {
	r.at("at", l.At, r.start.Add(r.model.now))
	r.at("due", l.Due, r.start.Add(t.due))
	equal(r.env, "urgent", l.Urgent, t.urgent)
	equal(r.env, "named", l.Named, t.submission.Named)
	equal(r.env, "payload", len(l.Task.Payload), len(t.submission.Payload))
	r.sameProgress("progress", l.Progress, t.progress)
}

// repeatClaim sends a claim again: it answers with what is still under its leases.
func (r *random) repeatClaim(c *sentClaim) {
	r.did("repeat claim %s #%d", c.request.Worker, c.request.Seq)
	var want []string
	for _, l := range c.leased {
		if r.model.current(l.Task.ID, l.Lease) != nil {
			want = append(want, string(l.Task.ID))
		}
	}
	reply, err := r.store.Claim(r.ctx, again(c.request))
	if !r.model.exists {
		r.fails("repeated claim", err, dispatch.ErrQueueNotFound)
		return
	}
	r.ok(err)
	equal(r.env, "leased again", leasedIDs(reply.Leased), want)
	for _, l := range reply.Leased {
		equal(r.env, "lease", l.Lease, r.model.tasks[string(l.Task.ID)].lease.Lease)
	}
}
