package dispatch

import (
	"context"
	"time"

	"github.com/dispatchkit/dispatch/cluster"
	"github.com/dispatchkit/dispatch/scheduler"
)

// servedQueue is what this process remembers of a queue. Dispatcher.mu guards it.
type servedQueue struct {
	name     string
	settings *Queue // of the last claim; nil before
	// stale says that the settings were changed, or may have been, since the last claim was sent: the next one asks for
	// them, and until then the scheduler is told of no limits.
	stale bool

	// unanswered is a claim that was sent and whose answer is not known; it is repeated before anything else.
	unanswered *ClaimRequest
	sentAt     time.Time // when it was sent first
	failures   int       // claims that failed in a row

	// leaseEnd is when the earliest lease of the queue ends, as far as known; zero is unknown.
	leaseEnd time.Time
	// answeredAt is when a claim was answered last, which told of the earliest lease end.
	answeredAt time.Time
	// emptyAt is when a claim last found no task due, until the queue's note has been put right; zero is "not empty".
	// nextDue is when, by that claim, the next task is due; zero is never.
	emptyAt, nextDue time.Time

	// actingUntil is until when this process takes itself for the queue's home, and strangeUntil until when it leaves the
	// queue's tasks to others first, because it could not run all of them; see home.go.
	actingUntil, strangeUntil time.Time
	// revokedAt is when a message last told of a lease of the queue that was taken away, and checking says that the leases
	// of its attempts are being looked at; see revoke.go.
	revokedAt time.Time
	checking  bool
	// urgentAfter is until when it leaves those alone that are to be run at once and were passed on, because it could not
	// run one of them.
	urgentAfter time.Time
	// handedAt is when it last asked others to step in; asking says that it is about to do so again.
	handedAt time.Time
	asking   bool

	// skip is how many of the first due tasks did not fit, by claims since skipSince; searching says that claims have not
	// seen all due tasks yet, and looks counts these claims; see room.go.
	skip, looks int
	skipSince   time.Time
	searching   bool
	warnedUnfit bool
	// told is the room that the last claim was told of, and whole says that it was all of the capacity. reserved is the part
	// of it that the claim keeps from others; nil when it keeps nothing.
	told, reserved cluster.Resources
	whole          bool
	// need is what the tasks that the queue brought last need at most, of each resource; nil before the first.
	need cluster.Resources
	// starved says that the queue is in Dispatcher.room.line, at its turn, with first tasks none of which fits into tooLittle.
	// woken says that it has left the line to claim once more, until that claim is answered.
	starved, woken bool
	turn           uint64
	tooLittle      cluster.Resources

	// pace is the part of the queue's rate that this process predicts, as claims have shown it; 0 is its share.
	pace float64
}

// queue returns what is remembered of a queue. d.mu is held.
func (d *Dispatcher) queue(name string) *servedQueue {
	q := d.queues[name]
	if q == nil {
		q = &servedQueue{name: name}
		d.queues[name] = q
	}
	return q
}

// settingsOf is what is known of a queue's settings; they are read when need says so and none are known.
func (d *Dispatcher) settingsOf(ctx context.Context, name string, need bool) (*Queue, error) {
	var settings *Queue
	d.mu.Lock()
	if q := d.queues[name]; q != nil {
		settings = q.settings
	}
	d.mu.Unlock()
	if settings != nil || !need {
		return settings, nil
	}
	return d.store.Queue(ctx, name)
}

// limitsOf is what this process's scheduler predicts of a queue: the queue's limits, with the part of the rate that adapt
// has found. d.mu is held.
func (d *Dispatcher) limitsOf(q *servedQueue) scheduler.Limits {
	l := scheduler.Limits{Weight: q.settings.Weight, Concurrent: max(q.settings.MaxConcurrent, 0)}
	if q.settings.Rate > 0 {
		share := max(q.pace, d.standing(q.name).Share)
		l.Rate = q.settings.Rate * share
		l.Burst = max(int(float64(q.settings.EffectiveBurst())*share), 1)
	}
	return l
}

// adapt fits the part of a queue's rate that this process predicts to what a claim has found: less than it asked for, or
// tokens that nobody else has taken. So a process asks for its share while the others take theirs, and for all of it
// while they do not. d.mu is held.
func (d *Dispatcher) adapt(q *servedQueue, reply *ClaimReply, now time.Time) {
	if q.settings == nil || q.settings.Rate <= 0 || q.stale {
		return
	}
	share := d.standing(q.name).Share
	pace := max(q.pace, share)
	switch {
	case reply.Block == BlockedByRate:
		pace = max(pace*0.8, share)
	case len(reply.Leased) > 0 && reply.Next == 0:
		pace = min(pace*1.5, 1)
	}
	if pace != q.pace {
		q.pace = pace
		d.sched.SetLimits(q.name, d.limitsOf(q), now)
	}
}

// throttledPause is the least wait for a queue that has no rate but is slowed down: its tokens gather for twice as long.
const throttledPause = 100 * time.Millisecond

// rateWait is how long this process waits after a claim that has met the rate: until there is a token, and when it found
// none at all for as long as its part of the rate takes to bring one, so that not all processes come for each token.
// Meanwhile tokens gather, unless the queue keeps only one: then each is worth the contest. d.mu is held.
func (d *Dispatcher) rateWait(q *servedQueue, reply *ClaimReply) time.Duration {
	if q.settings != nil && q.settings.Rate <= 0 { // its receivers are congested
		return max(reply.Wait, throttledPause)
	}
	if len(reply.Leased) > 0 || q.settings == nil || q.settings.Rate <= 0 || q.settings.EffectiveBurst() < 2 {
		return reply.Wait
	}
	part := max(q.pace, d.standing(q.name).Share)
	return max(reply.Wait, time.Duration(float64(time.Second)/(q.settings.Rate*part)))
}
