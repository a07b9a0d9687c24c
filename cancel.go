package dispatch

import (
	"context"
	"time"
)

// CancelTask ends a task as cancelled, in whatever live state it is: it is not attempted any more. The context of an
// attempt that runs, on whatever process, ends with ErrCancelled within a second, or its HTTP exchange is aborted; what it
// reports is discarded, and the attempt is recorded as cancelled. The task stays readable for RetentionFailed, and its name
// taken as if it had died.
//
// Cancelling a cancelled task does nothing. It returns ErrTaskNotFound, and ErrTaskEnded for a task that had ended before.
func (c *Client) CancelTask(ctx context.Context, queue string, id TaskID) error {
	if err := validateTaskName(queue, id); err != nil {
		return err
	}
	for range conflictTries {
		held, err := c.store.Lease(ctx, queue, id)
		if err != nil {
			return err
		}
		order := Cancellation{ID: id, Retention: c.keep.failed, Tombstone: c.keep.dedup}
		if held != nil {
			order.Lease = held.Lease
			if held.Err == nil {
				order.Progress = held.Progress.with(cancelledAttempt(held))
			}
		}
		cancelled, err := c.acked.CancelTask(ctx, queue, order)
		if !happened(err) {
			return named(err, string(id))
		}
		if cancelled || err != nil {
			if held != nil {
				await(ctx, c.announce(Hint{Queue: queue, Revoked: held.Lease.Token, Cancelled: true}))
			}
			return err
		}
	}
	return ErrConflict // its attempts begin and end all the time
}

// cancelledAttempt is what is kept of an attempt whose lease was taken over at l.At. The token follows the store's clock
// in µs, so it tells when the lease began.
func cancelledAttempt(l *Leased) AttemptRecord {
	started := leaseBegan(l.Lease)
	return AttemptRecord{
		Number: l.Progress.Attempts + 1, StartedAt: started, Duration: max(l.At.Sub(started), 0), Worker: l.Worker,
		Token: l.Lease.Token, ErrorKind: KindCancelled, Error: ErrCancelled.Error(),
	}
}

func leaseBegan(l Lease) time.Time { return time.UnixMilli(l.Token / 1000).UTC() }
