package dispatch

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The headers of a dead letter that tell where it comes from. A task with a Kind has them in its Metadata, and one with a
// URL too.
const (
	// HeaderDeadLetterQueue and HeaderDeadLetterTask are the queue and the ID of the task that died.
	HeaderDeadLetterQueue = "X-Dispatch-Dead-Letter-Queue"
	HeaderDeadLetterTask  = "X-Dispatch-Dead-Letter-Task"
	// HeaderDeadLetterAttempts is how many attempts it had, and HeaderDeadLetterReason the ErrorKind of the last.
	HeaderDeadLetterAttempts = "X-Dispatch-Dead-Letter-Attempts"
	HeaderDeadLetterReason   = "X-Dispatch-Dead-Letter-Reason"
)

// deadLetterPath is, in Metadata, the queues in which a task has died, with commas between. A copy never goes to one of
// them: two changes of settings at the same moment may have made a cycle that neither saw.
const deadLetterPath = "X-Dispatch-Dead-Letter-Path"

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

// bury stores the copy of a task that is about to be settled as dead, if its queue has a dead letter queue, and says
// whether it may be settled now. The ID of the copy is made of the task, so that a worker that dies between the two is
// followed by one that stores it again, in vain. It tries until the lease is over.
func (d *Dispatcher) bury(ctx context.Context, r *running, s *Settlement, until time.Time) bool {
	if s.Outcome != Dead || r.settings == nil || r.settings.DeadLetterQueue == "" {
		return true
	}
	to := r.settings.DeadLetterQueue
	letter, ok := deadLetter(r.leased, s.Progress, to)
	if !ok {
		d.log.Warn("dispatch: a task has died in each of its dead letter queues; it is copied no further",
			"queue", r.leased.Task.Queue, "task", r.leased.Task.ID, "dead_letter_queue", to)
		return true
	}
	for failures := 1; ; failures++ {
		tried, cancel := context.WithTimeout(ctx, enqueuePatience)
		reply, refused, err := d.storeTasks(tried, to, []Submission{letter}, EnqueueOptions{Draining: true})
		cancel()
		d.announceEnqueue(to, reply, err)
		if err == nil {
			d.log.recovered("dead letters")
			if refused[0] != nil && !errors.Is(refused[0], ErrDuplicateTask) {
				d.log.Warn("dispatch: a dead letter was refused", "queue", r.leased.Task.Queue, "task", r.leased.Task.ID,
					"dead_letter_queue", to, "error", refused[0])
			}
			return true
		}
		if ctx.Err() != nil || !d.opts.Clock.Now().Before(until) {
			return false
		}
		d.log.failing("dead letters", err, "queue", r.leased.Task.Queue, "dead_letter_queue", to)
		d.pause(ctx, backoffAfter(failures))
	}
}

// deadLetter makes the copy of a task that has died, unless that has died in the queue before.
func deadLetter(l *Leased, p *Progress, to string) (Submission, bool) {
	path := []string{l.Task.Queue}
	if earlier := l.Task.Metadata[deadLetterPath]; earlier != "" {
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
	t.Metadata[deadLetterPath] = strings.Join(path, ",")
	if t.URL != "" {
		if t.Header = t.Header.Clone(); t.Header == nil {
			t.Header = make(http.Header)
		}
		for name, value := range origin {
			t.Header[name] = []string{value}
		}
	}
	return Submission{Task: t, Named: true, Derived: true}, true
}
