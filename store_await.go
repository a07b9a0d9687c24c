package dispatch

import "context"

// Awaiter tells processes which tasks have ended, so that none has to look at them again and again.
type Awaiter interface {
	// Await says which of the tasks of a queue, at most 250, neither wait nor run: they have ended, or never were. All in
	// one step it arranges that the end of the others is told: whoever settles a task for good or deletes it, for at least
	// half a minute and less than a minute from now, tells it to all that ListenEnded at that time. It creates no queue.
	Await(ctx context.Context, queue string, ids []TaskID) (ended []TaskID, err error)
	// ListenEnded calls ended with tasks of any queue that have ended, or may have: those that are told of, and not those
	// that a purge, the deletion of their queue or a failure has taken. Messages may be lost, late, repeated or forged.
	// joined is as in Waker.Listen, and so is the error.
	ListenEnded(ctx context.Context, joined func(), ended func(queue string, ids []TaskID)) error
}
