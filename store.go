package dispatch

import (
	"context"
	"time"

	"github.com/dispatchkit/dispatch/cluster"
)

// Store is everything that Dispatch asks of its storage, as named facets. redisstore has the implementation; the suite
// in redisstore/storetest says what every other one must do.
//
// All methods are safe for concurrent use and return within a second when their context ends. Every instant that is
// stored, and every decision about one, is by the store's clock; methods answer with relative waits, which callers time
// by their own clock. A wait below zero means "nothing known". Every method may be repeated after an error.
type Store interface {
	Enqueuer
	Claimer
	Settler
	Sweeper
	Waker
	Awaiter
	QueueStore
	Inspector
	CronStore
	Leadership
	cluster.Store
}

// Enqueuer takes tasks in.
type Enqueuer interface {
	// Enqueue stores tasks of one queue, each on its own: one refused does not hold up the others. The ID of a task that is
	// not Named was generated, and comes once in a call. A queue that does not exist is created with default settings, or
	// with o.Strict refused whole with ErrQueueNotFound. When the queue requires something else than o.Requires nothing is
	// stored, and the answer says what it requires.
	//
	// The error is about the call: with ErrUncertain some or all of the tasks may have been stored, with any other
	// none were.
	Enqueue(ctx context.Context, queue string, tasks []Submission, o EnqueueOptions) (EnqueueReply, error)
}

// EnqueueOptions say how tasks are stored.
type EnqueueOptions struct {
	// Strict refuses tasks for a queue that does not exist.
	Strict bool
	// Requires is what the sender takes the queue's Requires for: with them it has filled in those of the tasks.
	Requires cluster.Resources
	// Draining stores tasks also in a queue that drains, which otherwise refuses all with ErrQueueDraining.
	Draining bool
}

// Submission is a task on its way into the store: valid, with an ID, a Method and a Timeout.
type Submission struct {
	Task
	// Named says that the caller chose the ID, so that the name stays taken for a while after the task has ended.
	Named bool
	// Nonce is the same when one call is repeated, and different for two calls that submit the same name.
	Nonce uint64
	// Derived says that the ID was made of something that may be seen twice, such as a tick of a cron entry. Whatever the
	// dedup window, its name stays taken for at least an hour after the task has ended or was removed.
	Derived bool
	// Window is how long the name of a named task stays taken after its end; 0 leaves that to whoever ends it, below zero is
	// not at all.
	Window time.Duration
}

// EnqueueReply is what became of the submissions.
type EnqueueReply struct {
	// Duplicate says for each submission whether it was refused because its name is taken.
	Duplicate []bool
	// Moved says that the queue's earliest due time came nearer, so that workers should hear of it.
	Moved bool
	// Wait is how long until the queue's earliest task is due. It may be below zero: overdue by so much.
	Wait time.Duration
	// Refused says that nothing was stored, because the queue has these Requires.
	Refused  bool
	Requires cluster.Resources
}

// Claimer leases due tasks to workers.
type Claimer interface {
	// Claim leases up to Budget due tasks of one queue, each under a new token, as far as the queue's limits allow, and
	// fewer when they are large. It returns ErrQueueNotFound for a queue that does not exist. A worker has at most one
	// claim per queue in flight. Repeated with the same Seq it answers the same; with a Seq lower than one it has seen,
	// it leases nothing.
	Claim(ctx context.Context, r ClaimRequest) (*ClaimReply, error)
}

// ClaimRequest asks for due tasks of one queue.
type ClaimRequest struct {
	// Queue is claimed for Worker.
	Queue  string
	Worker cluster.WorkerID
	// Seq numbers the worker's claims of this queue, rising. Repeat says that one with this number was sent before.
	Seq    int64
	Repeat bool
	// Budget is the most tasks wanted, at least 1.
	Budget int
	// Grace is added to a task's Timeout to make its lease.
	Grace time.Duration
	// Free is what the worker has left of its capacity; nil when it states none. Tasks that do not fit stay.
	Free cluster.Resources
	// Skip is how many of the first due tasks to leave aside, which did not fit as an earlier answer said; those that are to be
	// run at once do not count.
	Skip int
	// Version is the version of the queue's settings that the worker knows, 0 for none.
	Version int64
	// Tombstone is how long the names of tasks stay taken that are dropped because they are older than the queue's TaskTTL.
	Tombstone time.Duration
	// SkipPassed leaves tasks alone that are to be run at once and that a worker has passed on, as it could not run them.
	SkipPassed bool
}

// ClaimReply is the answer to a claim.
type ClaimReply struct {
	// Leased are the tasks that are now the worker's.
	Leased []Leased
	// Next is how long until the next task that was not leased is due: 0 for now, below zero when none waits.
	Next time.Duration
	// LeaseEnd is how long until the earliest lease of the queue ends, whoever holds it.
	LeaseEnd time.Duration
	// Block says why tasks that are due were not leased, or is empty. With BlockedByRate, Wait is how long until the
	// next token.
	Block Block
	Wait  time.Duration
	// Skip is, with BlockedByCapacity, how many tasks to leave aside to see those behind them; 0 when all were seen.
	Skip int
	// Urgent says that more tasks are left that are to be run at once.
	Urgent bool
	// Settings are the queue's, when they differ from the Version asked with; otherwise nil.
	Settings *Queue
}

// Block is a limit of a queue that kept due tasks from being leased.
type Block string

// The limits that block a claim.
const (
	// BlockedByPause is a paused queue.
	BlockedByPause Block = "paused"
	// BlockedByCapacity is a queue whose first due tasks do not fit the worker.
	BlockedByCapacity Block = "capacity"
	// BlockedByConcurrency is a queue with MaxConcurrent leases.
	BlockedByConcurrency Block = "concurrency"
	// BlockedByRate is a queue whose Rate is used up for the moment.
	BlockedByRate Block = "rate"
)

// Lease is the right of one worker to one attempt at one task.
type Lease struct {
	// Token is the fencing token: it rises with every lease of a queue. Receivers may fence with it.
	Token int64
	// Fence is the whole lease as the store holds it, equal to no other lease ever. The store compares it.
	Fence string
}

// Leased is a task under a lease.
type Leased struct {
	// Task is the task, with ID and Queue. Named, Derived and Window are as in Submission.
	Task    Task
	Named   bool
	Derived bool
	Window  time.Duration
	// CreatedAt is when the task was stored.
	CreatedAt time.Time
	// Lease is the right to this attempt.
	Lease Lease
	// Worker holds the lease.
	Worker cluster.WorkerID
	// At is the store's time of this answer: for a claim, when the lease began.
	At time.Time
	// Due is when the task was due (claims only). Urgent says that it was asked for then, by RunTask.
	Due    time.Time
	Urgent bool
	// Progress is what earlier attempts left.
	Progress Progress
	// Err says that the record cannot be read by this version; then only Task.ID and Task.Queue are set.
	Err error
}

// Settler ends leases, or prolongs them, by their fence. A lease that is no longer current is left alone and reported.
type Settler interface {
	// Settle applies outcomes, each on its own, and says for each whether its lease was current. A worker has at most
	// one settle per queue in flight; repeated with the same Seq it answers the same. Seq 0 is not remembered.
	Settle(ctx context.Context, r SettleRequest) (SettleReply, error)
	// Holds says for each lease whether it is the current one of its task.
	Holds(ctx context.Context, queue string, leases []Held) ([]bool, error)
	// Extend moves the ends of leases to the given time from now, and says for each whether it was current.
	Extend(ctx context.Context, queue string, extensions []Extension) ([]bool, error)
}

// SettleRequest carries the outcomes of attempts at tasks of one queue.
type SettleRequest struct {
	// Queue is settled by Worker.
	Queue  string
	Worker cluster.WorkerID
	// Seq numbers the worker's settles of this queue, rising from 1. 0 is one that nobody will ask about again.
	Seq int64
	// Ended settles only attempts whose leases have ended, of all Items: one that was extended since it was read as ended is its
	// holder's still. Seq is 0 then.
	Ended bool
	// Items are the outcomes.
	Items []Settlement
	// Traffic is what receivers said, counted once however often the request is repeated. When they are congested, the
	// store hands out fewer tasks of the queue per second for a while, to all workers.
	Traffic Traffic
}

// Traffic counts HTTP requests.
type Traffic struct {
	// Sent is all of them, Failed those without a status of 200 to 299, and Congested those whose receiver asked for less.
	Sent, Failed, Congested int
}

// Settlement is the outcome of one attempt.
type Settlement struct {
	// ID and Lease say which attempt.
	ID    TaskID
	Lease Lease
	// Outcome says what becomes of the task.
	Outcome Outcome
	// After is, from now: when a retried or released task is due, how long a succeeded or dead one is retained (0: it
	// is gone at once).
	After time.Duration
	// GivenBack says of a released task that it was not its own doing: one that was to be run at once still is, and does not
	// wait. With an After the worker passes it on: others of the kind come before it.
	GivenBack bool
	// Tombstone is how long the name of a named task stays taken once it has ended, for its age too; 0 frees it at once.
	Tombstone time.Duration
	// Progress replaces the stored progress, unless it is nil.
	Progress *Progress
}

// SettleReply is what became of the outcomes.
type SettleReply struct {
	// Applied says for each item whether its lease was current and the outcome is stored. Dropped says of those that were to
	// bring their task back that it is gone instead: it was purged meanwhile, or is older than the queue's TaskTTL.
	Applied, Dropped []bool
	// Moved is as in EnqueueReply: tasks that were retried or released are due again. Wait is so only with that.
	Moved bool
	Wait  time.Duration
}

// Held is a lease that somebody takes for its own.
type Held struct {
	// ID and Lease say which lease.
	ID    TaskID
	Lease Lease
}

// Extension moves the end of one lease.
type Extension struct {
	// ID and Lease say which lease.
	ID    TaskID
	Lease Lease
	// For is the new length of the lease, from now.
	For time.Duration
}

// Sweeper finds what workers left behind.
type Sweeper interface {
	// ExpiredLeases returns leases that have ended, the longest overdue first, at most limit; fewer when they are
	// large. Next is how long until the earliest lease of the queue ends that was not returned: 0 when more have ended.
	ExpiredLeases(ctx context.Context, queue string, limit int) (leases []Leased, next time.Duration, err error)
	// HeldLeases returns one page of the leases that workers hold on a queue. The cursor starts at 0 and is 0 again
	// after the last page. A lease may be missing or come twice when leases begin or end meanwhile.
	HeldLeases(ctx context.Context, queue string, workers []cluster.WorkerID, cursor uint64) (leases []Leased, next uint64, err error)
	// Lease returns the current lease of a task, or nil when it has none.
	Lease(ctx context.Context, queue string, id TaskID) (*Leased, error)
	// Expiring returns up to limit queues that have retained tasks or names whose time is over.
	Expiring(ctx context.Context, limit int) ([]string, error)
	// Cleanup removes up to limit retained tasks and names of a queue whose time is over, and says whether there are
	// more of them.
	Cleanup(ctx context.Context, queue string, limit int) (more bool, err error)
}

// Hint says that a queue has something to do in a while.
type Hint struct {
	// Queue has a due task, or a lease that ends, after Wait. Below zero it is overdue by so much, and for Rest it is
	// never.
	Queue string
	Wait  time.Duration
	// HandOver asks every process to step in at once, because those whose turn it is have no place for more.
	HandOver bool
	// Changed says that the settings of the queue were changed, or it was resumed, or one of its tasks is to run whatever
	// the limits, so that what a process knows of these is void.
	Changed bool
	// Revoked is the token of a lease that was taken from its worker, or AllLeases, and Cancelled says that it was because the
	// task was cancelled. Nothing is noted for it, and nothing else of the hint counts.
	Revoked   int64
	Cancelled bool
}

// AllLeases stands for all leases of a queue.
const AllLeases = -1

// Waker tells processes which queues have work, so that none has to look at idle ones. Hints may be late, early or
// repeated; a claim decides.
type Waker interface {
	// Announce notes hints, unless an earlier one is noted for the queue, and sends them to all listeners. It is called
	// after the store has changed, never before.
	Announce(ctx context.Context, hints []Hint) error
	// Hints returns the noted hints whose wait is at most within, soonest first.
	Hints(ctx context.Context, within time.Duration) ([]Hint, error)
	// Rest replaces the notes of queues that were found quiet, and then looks at each of them once more. It returns
	// the queues that had become busy, whose notes it has repaired.
	Rest(ctx context.Context, hints []Hint) ([]Hint, error)
	// Look says what queues that exist have to do now, whatever is noted, and repairs the notes of those that come
	// sooner than noted.
	Look(ctx context.Context, queues []string) ([]Hint, error)
	// Listen calls heard with every message of Announce until ctx ends, and joined whenever it has just subscribed:
	// at the start and after each interruption, in which messages may have been missed. It returns ctx's error.
	Listen(ctx context.Context, joined func(), heard func([]Hint)) error
}

// QueueStore keeps queues and their settings.
type QueueStore interface {
	// CreateQueue creates a queue and says whether it did; one that exists is left as it is.
	CreateQueue(ctx context.Context, q Queue) (created bool, err error)
	// ReplaceQueue stores settings if q.Version is the current version, and says whether it was, or returns
	// ErrQueueNotFound.
	ReplaceQueue(ctx context.Context, q Queue) (replaced bool, err error)
	// Queue returns a queue, or ErrQueueNotFound.
	Queue(ctx context.Context, name string) (*Queue, error)
	// Queues returns one page of the names of all queues, in no order; the cursor works as in HeldLeases.
	Queues(ctx context.Context, cursor uint64) (names []string, next uint64, err error)
	// SetState pauses a queue, has it drain or resumes it, which ends both, or returns ErrQueueNotFound. Repeating it is no
	// error.
	SetState(ctx context.Context, name string, state QueueState) error
	// DeleteQueue removes a queue with all its tasks and names, or returns ErrQueueNotFound. Attempts that run end
	// with a lost lease.
	DeleteQueue(ctx context.Context, name string) error
	// PurgeQueue removes the tasks of a queue that wait and were stored before the call, whose names stay taken for
	// tombstone. An attempt that runs finishes, and is not retried. From the moment PurgeQueue has begun, no task
	// stored before it starts; the removal goes in slices. Or ErrQueueNotFound.
	PurgeQueue(ctx context.Context, name string, tombstone time.Duration) error
	// Counts counts the tasks of a queue, or returns ErrQueueNotFound.
	Counts(ctx context.Context, name string) (Counts, error)
}
