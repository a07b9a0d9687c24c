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
	// Clients is how many more clients work on the store. Between any two requests that one of their calls makes, other clients
	// make whole calls, and answers get lost.
	Clients int
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
		claims: make(map[cluster.WorkerID]*sentClaim), busy: make(map[cluster.WorkerID]bool),
	}
	r.plain = e.store
	for range o.Clients {
		r.clients = append(r.clients, h.Client(t, e.store, r.between))
	}
	defer func() {
		if t.Failed() {
			t.Logf("seed %d; the last steps:\n%s", o.Seed, strings.Join(r.trace[max(0, len(r.trace)-40):], "\n"))
		}
	}()
	for range o.Steps {
		if len(r.clients) > 0 && r.IntN(2) == 0 {
			r.store = pick(r, r.clients)
		}
		r.focus = ""
		r.step()
		r.store = r.plain
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

	plain   dispatch.Store   // a client whose calls go through at once
	clients []dispatch.Store // whose calls go through between
	current *call            // the call of one of these that is on its way
	nested  bool             // others make calls meanwhile
	focus   string           // the task that it is about, if it is about one
	busy    map[cluster.WorkerID]bool
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
	type choice struct {
		weight int
		run    func()
	}
	steps := []choice{
		{25, r.enqueueSome}, {25, r.claimSome}, {25, r.settleSome}, {5, r.extendSome}, {5, r.sweepSome},
		{3, r.deleteSome}, {5, r.replaySome}, {3, r.runSome}, {3, r.cancelSome}, {5, r.editSome}, {3, r.rescheduleSome}, {2, r.purgeAll},
		{2, r.pause}, {3, r.cleanupAll},
	}
	if !r.nested { // the time of a call stands still, and a queue that is gone counts no tokens until the time goes on
		steps = append(steps, choice{10, r.pass}, choice{1, r.deleteAll})
	}
	if r.opts.Limits {
		steps = append(steps, choice{4, r.changeLimits})
	}
	if r.opts.Repeat {
		steps = append(steps, choice{15, r.repeatOld})
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
	var want dispatch.EnqueueReply
	created, stored := false, false
	got := sent(r, by("enqueue", func(again bool) {
		switch {
		case again && stored: // the store knows it by its number
			want.Moved, want.Wait = true, r.model.headWait()
		case r.current != nil && !r.model.exists && (again || !created):
			created = true // it finds no queue, and comes again to create it
		default:
			want = r.model.enqueue(batch)
			stored = r.model.stored > 0
		}
	}), func() dispatch.EnqueueReply { return r.enqueue(batch...) })
	equal(r.env, "enqueue", got, want)
}

func (r *random) claimSome() {
	w, free := r.worker()
	if !free {
		return
	}
	request := r.request(w, 1+r.IntN(6))
	request.Repeat = r.often()
	r.did("claim %s #%d budget %d repeat %v", w, request.Seq, request.Budget, request.Repeat)
	c := &claiming{random: r, request: request}
	c.make()
	if c.missing || r.Failed() {
		return
	}
	if c.remembered {
		r.claims[w] = &sentClaim{request: request, leased: c.leased, at: r.model.now}
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
	again := &claiming{random: r, request: again(c.request), sent: true, remembered: true, leased: c.leased}
	again.make()
}
