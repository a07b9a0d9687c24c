package dispatch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What a dead letter tells of where it comes from: in its Metadata, and to a receiver in headers of the same names.
const (
	// HeaderDeadLetterQueue and HeaderDeadLetterTask are the queue and the ID of the task that died.
	HeaderDeadLetterQueue = "X-Dispatch-Dead-Letter-Queue"
	HeaderDeadLetterTask  = "X-Dispatch-Dead-Letter-Task"
	// HeaderDeadLetterAttempts is how many attempts it had, and HeaderDeadLetterReason the ErrorKind of the last.
	HeaderDeadLetterAttempts = "X-Dispatch-Dead-Letter-Attempts"
	HeaderDeadLetterReason   = "X-Dispatch-Dead-Letter-Reason"
	// MetadataDeadLetterPath is, in Metadata only, the queues in which the task has died, with commas between. A letter never
	// goes to one of them: two changes of settings at the same moment may have made a cycle that neither saw.
	MetadataDeadLetterPath = "X-Dispatch-Dead-Letter-Path"
)

var deadLetterHeaders = []string{HeaderDeadLetterQueue, HeaderDeadLetterTask, HeaderDeadLetterAttempts, HeaderDeadLetterReason}

// maxDeadLetterChain is how many queues may follow one another as dead letter queues.
const maxDeadLetterChain = 10

// checkDeadLetters refuses a dead letter queue that leads back to its queue.
func (c *Client) checkDeadLetters(ctx context.Context, q Queue) error {
	name := q.DeadLetterQueue
	for range maxDeadLetterChain {
		switch name {
		case "":
			return nil
		case q.Name:
			return fieldErrorf("Queue.DeadLetterQueue", "%q leads back to %q", q.DeadLetterQueue, q.Name)
		}
		next, err := c.store.Queue(ctx, name)
		if isNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		name = next.DeadLetterQueue
	}
	return fieldErrorf("Queue.DeadLetterQueue", "begins a chain of more than %d queues", maxDeadLetterChain)
}

// bury stores the letter of a task that is about to be settled as dead, if its queue has a dead letter queue, and says
// whether it may be settled now. The ID of a letter is made of the task, so that a worker that dies between the two is
// followed by one that stores it again, in vain. It tries until the lease is over or ctx ends.
func (d *Dispatcher) bury(ctx context.Context, s *settling, until time.Time) bool {
	for failures := 1; ; failures++ {
		err := d.buryAll(ctx, []*settling{s})
		if err == nil {
			return true
		}
		if ctx.Err() != nil || !d.opts.Clock.Now().Before(until) {
			d.log.Warn("dispatch: a dead letter could not be stored; its task will run again",
				"queue", s.run.leased.Task.Queue, "task", s.run.leased.Task.ID, "error", err)
			return false
		}
		d.log.failing("dead letters", err, "queue", s.run.leased.Task.Queue)
		d.pause(ctx, backoffAfter(failures))
	}
}

// buryAll stores the letters of those tasks of one queue that have died, once. After an error some are stored. A task that
// is cancelled, or settled by somebody else, after its lease was looked at has a letter all the same.
func (d *Dispatcher) buryAll(ctx context.Context, batch []*settling) error {
	batch = slices.DeleteFunc(slices.Clone(batch), func(s *settling) bool { return !s.isLetter() })
	if len(batch) == 0 {
		return nil
	}
	leases := make([]Held, len(batch))
	for i, s := range batch {
		leases[i] = s.run.held()
	}
	held, err := d.store.Holds(ctx, batch[0].run.leased.Task.Queue, leases)
	if err != nil {
		return err
	}
	var letters []Submission
	for i, s := range batch {
		if !held[i] {
			continue // nobody has died: the store will refuse what is settled
		}
		letter, ok := deadLetter(s.run.leased, s.settlement.Progress, s.run.settings.DeadLetterQueue)
		if !ok {
			d.log.Warn("dispatch: a task has died in each of its dead letter queues; it is copied no further",
				"queue", s.run.leased.Task.Queue, "task", s.run.leased.Task.ID, "dead_letter_queue", s.run.settings.DeadLetterQueue)
			continue
		}
		letters = append(letters, letter)
	}
	for len(letters) > 0 {
		n := cutBatch(letters, enqueueBatchTasks, enqueueBatchBytes, func(l Submission) int { return l.Task.size() })
		if err := d.storeLetters(ctx, letters[:n]); err != nil {
			return err
		}
		letters = letters[n:]
	}
	return nil
}

// storeLetters stores dead letters for one queue. Those that are there are as good as stored.
func (d *Dispatcher) storeLetters(ctx context.Context, letters []Submission) error {
	ctx, cancel := context.WithTimeout(ctx, enqueuePatience)
	defer cancel()
	to := letters[0].Queue
	reply, refused, err := d.storeTasks(ctx, d.store, to, letters, EnqueueOptions{Draining: true})
	d.announceEnqueue(to, reply, err)
	if errors.Is(err, ErrStoreFull) {
		// The task is dead and retained all the same, and a full store must be drained.
		d.log.Warn("dispatch: the store is full; dead letters are not stored", "dead_letter_queue", to, "letters", len(letters))
		return nil
	}
	if err != nil {
		return err
	}
	d.log.recovered("dead letters")
	for i, err := range refused {
		if err != nil && !errors.Is(err, ErrDuplicateTask) {
			return fmt.Errorf("dead letter %s: %w", letters[i].ID, err)
		}
	}
	return nil
}

// isLetter says whether a copy of the task goes to a dead letter queue.
func (s *settling) isLetter() bool {
	return s.settlement.Outcome == Dead && s.run.settings != nil && s.run.settings.DeadLetterQueue != ""
}

// deadLetter makes the copy of a task that has died, unless that has died in the queue before.
func deadLetter(l *Leased, p *Progress, to string) (Submission, bool) {
	path := []string{l.Task.Queue}
	if earlier := l.Task.Metadata[MetadataDeadLetterPath]; earlier != "" {
		path = append(strings.Split(earlier, ","), path...)
	}
	if slices.Contains(path, to) {
		return Submission{}, false
	}
	origin := map[string]string{
		HeaderDeadLetterQueue: l.Task.Queue, HeaderDeadLetterTask: string(l.Task.ID),
		HeaderDeadLetterAttempts: strconv.Itoa(p.Attempts),
	}
	if n := len(p.History); n > 0 {
		origin[HeaderDeadLetterReason] = string(p.History[n-1].ErrorKind)
	}
	t := l.Task
	t.Queue, t.Retry, t.ScheduleTime, t.Delay = to, nil, time.Time{}, 0
	t.ID = hashedID("dl-", l.Task.Queue, string(l.Task.ID), strconv.FormatInt(l.CreatedAt.UnixMilli(), 10))
	if t.Metadata = maps.Clone(t.Metadata); t.Metadata == nil {
		t.Metadata = make(map[string]string)
	}
	maps.Copy(t.Metadata, origin)
	t.Metadata[MetadataDeadLetterPath] = strings.Join(path, ",")
	return Submission{Task: t, Named: true, Derived: true}, true
}
