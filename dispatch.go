package dispatch

import (
	"context"
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dispatchkit/dispatch/cluster"
	"github.com/dispatchkit/dispatch/scheduler"
	"github.com/dispatchkit/dispatch/worker"
)

// Dispatcher is one process's share of the work: it claims due tasks, delivers them and settles how they ended. It is
// a Client too. Any number of processes may each run one against the same store.
//
// Register handlers first, then Start or Run it, once; Stop ends it. All methods but Handle, HandleFunc and Use may be
// called at any time and concurrently.
type Dispatcher struct {
	*Client

	opts     Options
	log      *logger
	worker   cluster.WorkerID
	member   *cluster.Member
	serves   func(queue string) bool
	handlers map[string]Handler // guarded by mu until started, constant afterwards
	http     *worker.Deliverer
	pool     *worker.Pool[*running]
	settles  groupCommit[*settling]

	// seq numbers this worker's claims and settles, of all queues: a number never comes back.
	seq atomic.Int64
	// unsettled counts attempts that have ended and whose outcome is not stored.
	unsettled atomic.Int64
	// anyStuck says that some queue is in stuck.
	anyStuck atomic.Bool
	// signal wakes the claim loop; it holds one signal, because the loop looks at everything each time. So do the others,
	// for what is announced of the fleet.
	signal, planHeard, workersHeard, cronHeard, suspects chan struct{}
	// leading says that the duties of the leader are this process's.
	leading atomic.Bool
	// attempts ends when a stop has waited for attempts for long enough: what they do besides ends with it.
	attempts context.Context
	giveUp   context.CancelFunc
	// isolated says that no heartbeat got through for too long: nothing is claimed or started.
	isolated atomic.Bool
	// led is closed when the elector is done with, and beaten when the last heartbeat is over.
	led, beaten chan struct{}

	// reading is held by the one that reads notes, firing by the one that fires cron entries, sweeping by the one that
	// sweeps.
	reading, firing, sweeping chan struct{}

	mu         sync.Mutex // guards what follows
	middleware []func(Handler) Handler
	started    bool
	sched      *scheduler.Scheduler
	queues     map[string]*servedQueue
	unknown    map[string]bool // kinds without handler that were warned of
	quiet      []chan struct{} // closed when nothing is in progress; see WaitIdle
	running    map[*running]struct{}
	told       <-chan struct{} // closed when the last announcement of this process's settles is out
	stuck      map[string]bool // queues whose outcomes the store does not take; see stuck.go
	room       room
	notes      []Hint // as they were read last, at notesAt
	notesAt    time.Time
	// planned is the plan in force, nil before the first; standings are this process's places in it, as far as asked for.
	planned   *cluster.Plan
	standings map[string]cluster.Standing
	// attemptsEnded says that the contexts of attempts have been ended, and that of a late one ends at once.
	attemptsEnded bool

	life lifetime
}

// New makes a dispatcher. The error is a *FieldError. Nothing runs before Start.
func New(store Store, o Options) (*Dispatcher, error) {
	if isNil(store) {
		return nil, fieldErrorf("Store", "is nil")
	}
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	d := &Dispatcher{
		Client:   newClient(store, o.Registry, o.Logger, o.Clock, o.StrictQueues, o.retention()),
		opts:     o,
		worker:   cluster.NewWorkerID(),
		serves:   servesQueues(o.Queues),
		handlers: make(map[string]Handler),
		http: worker.NewDeliverer(worker.Options{
			Client: o.HTTPClient, UserAgent: userAgent, Egress: o.Egress, BreakerThreshold: o.BreakerThreshold,
		}),
		signal: make(chan struct{}, 1), planHeard: make(chan struct{}, 1), workersHeard: make(chan struct{}, 1),
		reading: make(chan struct{}, 1), firing: make(chan struct{}, 1), sweeping: make(chan struct{}, 1),
		cronHeard: make(chan struct{}, 1), suspects: make(chan struct{}, 1), led: make(chan struct{}), beaten: make(chan struct{}),
		room: room{free: maps.Clone(o.Capacity)}, standings: make(map[string]cluster.Standing),
		queues:  make(map[string]*servedQueue),
		unknown: make(map[string]bool),
		running: make(map[*running]struct{}),
		stuck:   make(map[string]bool),
	}
	if err := d.Client.setDurability(o.Durability); err != nil {
		return nil, within("Options.Durability", "Durability", err)
	}
	d.log = newLogger(o.Logger.With("worker", string(d.worker)))
	if o.HTTPClient != nil {
		d.log.Warn("dispatch: the HTTP client is the caller's: no egress guard but its own keeps tasks from private addresses")
	}
	var err error
	if d.member, err = d.newMember(); err != nil {
		return nil, err
	}
	d.sched = scheduler.New(scheduler.Options{Places: o.GlobalConcurrency, ClaimCap: o.PerQueueClaimCap, Shared: o.shared()})
	bound := o.GlobalConcurrency
	if o.shared() {
		bound = 0 // until tellParts
	}
	d.pool = worker.NewPool(o.GlobalConcurrency, bound, d.run)
	d.settles = groupCommit[*settling]{
		send:     func(queue string, batch []*settling) { d.sendSettles(queue, batch) },
		maxItems: settleBatchItems, maxBytes: settleBatchBytes, size: (*settling).size,
	}
	d.Client.hear, d.Client.trace = d.hear, o.TraceContext
	d.attempts, d.giveUp = context.WithCancel(context.Background())
	d.life.init()
	return d, nil
}

func servesQueues(names []string) func(string) bool {
	if len(names) == 0 {
		return func(string) bool { return true }
	}
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return func(queue string) bool { return set[queue] }
}

// Worker is the ID of this process: it stands in the leases that the process holds.
func (d *Dispatcher) Worker() cluster.WorkerID { return d.worker }

// Start begins to work and returns at once. The end of ctx begins the same drain as Stop. It returns ErrStarted when
// the dispatcher was started or stopped before.
func (d *Dispatcher) Start(ctx context.Context) error {
	if ctx == nil {
		return fieldErrorf("Start.ctx", "is nil")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	started := d.life.start(func() (atStop func() bool) {
		d.wrapHandlers()
		d.started = true
		for _, loop := range []func(context.Context){d.claimLoop, d.listenLoop, d.reconcileLoop, d.sweepLoop, d.fleetLoop} {
			d.life.goLoop(loop)
		}
		d.life.goLate(d.watchLeases)
		go func() { // not a loop that a stop waits for: the elector may be anybody's code
			defer close(d.led)
			d.leadLoop(d.life.loops)
		}()
		go func() {
			defer close(d.beaten)
			d.member.Run(d.life.beats)
		}()
		return context.AfterFunc(ctx, func() { d.life.stop(d.drain) })
	})
	if !started {
		return ErrStarted
	}
	return nil
}

// Run starts the dispatcher and blocks until it has been stopped, by the end of ctx or by Stop. It returns nil after a
// clean drain, ErrDrainTimeout after one that left handlers running, and ErrStarted.
func (d *Dispatcher) Run(ctx context.Context) error {
	if err := d.Start(ctx); err != nil {
		return err
	}
	return d.life.wait()
}

// Stop drains the dispatcher and returns when that is over, after little more than DrainTimeout at the latest: it stops
// claiming, gives back what has not started, waits for running attempts up to DrainTimeout, ends the contexts of the
// rest with ErrDraining and gives them back too. It returns ErrDrainTimeout when handlers ignored that. Stopping before
// Start, or again, does nothing but wait.
func (d *Dispatcher) Stop() error {
	d.life.stop(d.drain)
	err := d.life.wait()
	if errors.Is(err, errNeverStarted) {
		return nil
	}
	return err
}
