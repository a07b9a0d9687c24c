package dispatch

import (
	"context"
	"time"

	"github.com/dispatchkit/dispatch/cluster"
)

// What belongs to no queue is announced under these names, as the Queue of a Hint. Nothing is noted for them. A store
// announces them by itself when it has changed what they stand for.
const (
	HintLeader  = "~leader"  // the leadership was given up
	HintWorkers = "~workers" // a worker came, went or changed its state
	HintPlan    = "~plan"    // there is a new plan
	HintCron    = "~cron"    // a cron entry was changed
)

// Leadership fences what a leader writes for others to read: each term is higher than all before it, and what carries a
// term below the highest is refused with ErrLeadershipLost.
type Leadership interface {
	// BeginTerm begins the term of a worker that was elected and returns its number. It returns ErrLeadershipLost when
	// the store knows that another worker leads.
	BeginTerm(ctx context.Context, id cluster.WorkerID) (term int64, err error)
	// PublishPlan stores a plan and announces "~plan", or returns ErrLeadershipLost.
	PublishPlan(ctx context.Context, p *cluster.Plan) error
	// Plan returns the plan, or nil when there is none.
	Plan(ctx context.Context) (*cluster.Plan, error)
}

// CronStore keeps cron entries. Which ticks of an entry are to fire is decided by the leader alone; the store only
// remembers up to which instant they were dealt with.
type CronStore interface {
	// PutEntry creates an entry or replaces one of the same name. Paused is taken over from the one before, and so is the
	// Owner if that of e is empty. If nothing but Paused differs from what is stored, nothing is changed; otherwise Next
	// becomes zero and "~cron" is announced, and Since becomes now unless Spec and Zone stay and the entry is not paused.
	// Revision, Since, Next and Paused of e are ignored.
	PutEntry(ctx context.Context, e *EntryInfo) error
	// DeleteEntry removes an entry, if revision is its current one or 0. It returns ErrEntryNotFound when there is no such
	// entry or, with another revision, when it was changed.
	DeleteEntry(ctx context.Context, name string, revision int64) error
	// PauseEntry pauses or resumes an entry, or returns ErrEntryNotFound. Repeating it changes nothing. At a resumption
	// Since becomes now and Next zero, and "~cron" is announced.
	PauseEntry(ctx context.Context, name string, paused bool) error
	// Entry returns one entry, or ErrEntryNotFound.
	Entry(ctx context.Context, name string) (*EntryInfo, error)
	// Entries returns one page of all entries, in no order; the cursor works as in HeldLeases.
	Entries(ctx context.Context, cursor uint64) (entries []*EntryInfo, next uint64, err error)
	// DueEntries returns entries that are not paused and whose Next is zero or past, the longest due first, after skip
	// of them, at most limit and fewer when they are large; and the store's time. Wait is how long until the next one
	// that was not returned is due: 0 for now, below zero when none is left.
	DueEntries(ctx context.Context, skip, limit int) (due []*EntryInfo, now time.Time, wait time.Duration, err error)
	// AdvanceEntry notes that the ticks of an entry up to an instant are dealt with. It changes nothing and returns false
	// if the entry is gone or paused, has another revision, or was advanced as far before, and returns ErrLeadershipLost
	// for the Term of a leader that has been followed by another.
	AdvanceEntry(ctx context.Context, a EntryAdvance) (bool, error)
}

// EntryAdvance moves a cron entry on.
type EntryAdvance struct {
	// Name and Revision say which entry.
	Name     string
	Revision int64
	// Since is the instant up to which ticks are dealt with, and Next that of the next tick; zero if there is none ever.
	Since, Next time.Time
	// Term is the leader's; 0 is not checked.
	Term int64
}
