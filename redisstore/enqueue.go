package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/dispatchkit/dispatch"
)

// maxScriptItems bounds the items of one script call; a dispatcher sends at most 150. Lua's unpack ends at about 8,000 values.
const maxScriptItems = 250

// Enqueue implements dispatch.Enqueuer.
func (s *Store) Enqueue(ctx context.Context, queue string, tasks []dispatch.Submission, o dispatch.EnqueueOptions) (dispatch.EnqueueReply, error) {
	if len(tasks) == 0 || len(tasks) > maxScriptItems {
		return dispatch.EnqueueReply{}, fmt.Errorf("redisstore: enqueue of %d tasks, not 1 to %d", len(tasks), maxScriptItems)
	}
	lane, number := s.lanes.enter()
	defer s.lanes.leave(lane)
	args := make([]any, 6, 6+2*len(tasks))
	args[0], args[1], args[2], args[3], args[4] = s.now(), "", number, formatResources(o.Requires), flag(o.Draining)
	args[5] = dueArgs(tasks)
	records := make([]string, len(tasks))
	var err error
	for i := range tasks {
		if records[i], err = encodeRecord(&tasks[i]); err != nil {
			return dispatch.EnqueueReply{}, err
		}
		args = append(args, (*string)(&tasks[i].ID), &records[i]) // pointers cost no allocation each
	}
	k := s.queueKeys(queue)
	keys := []string{k.due, k.tasks, k.names, k.meta, k.state, k.done, k.dead, k.cancelled, s.callMemo(queue, lane)}
	call := s.inSteps()
	v, err := call.run(ctx, evenUncertain, s.scripts.enqueue, keys, args...)
	if err := call.asked(err); err != nil {
		return dispatch.EnqueueReply{}, err
	}
	r := replyOf(s.scripts.enqueue, v)
	code := r.int()
	call.begun = code == 1
	switch {
	case r.err != nil:
		return dispatch.EnqueueReply{}, r.err
	case code == 0 && o.Strict:
		return dispatch.EnqueueReply{}, dispatch.ErrQueueNotFound
	case code == 1:
		if err := call.made(call.listDurably(ctx, queue)); err != nil {
			return dispatch.EnqueueReply{}, err
		}
	case code == 0:
		// The queue does not exist. Its name is listed before it has a task, so that no task is ever in an unlisted queue.
		if err := call.asked(call.listQueue(ctx, queue)); err != nil {
			return dispatch.EnqueueReply{}, err
		}
		if args[1], err = encodeSettings(&dispatch.Queue{}); err != nil {
			return dispatch.EnqueueReply{}, err
		}
		v, err = call.run(ctx, evenUncertain, s.scripts.enqueue, keys, args...)
		if err := call.asked(err); err != nil {
			return dispatch.EnqueueReply{}, err
		}
		r = replyOf(s.scripts.enqueue, v)
		code = r.int()
		call.begun = code == 1
		// Listed once more, in case somebody deleted the queue between the two: see unlistQueue.
		if err := call.made(call.listQueue(ctx, queue)); err != nil {
			return dispatch.EnqueueReply{}, err
		}
	}
	reply, err := enqueueReply(code, r, len(tasks))
	if code == 1 { // what is refused whole is so whatever replicas have
		err = cmp.Or(err, call.silent)
	}
	return reply, err
}

func enqueueReply(code int64, r *reply, n int) (dispatch.EnqueueReply, error) {
	switch code {
	case -2:
		return dispatch.EnqueueReply{Refused: true, Requires: parseResources(r.string())}, r.err
	case -3:
		return dispatch.EnqueueReply{}, dispatch.ErrQueueDraining
	}
	out := dispatch.EnqueueReply{Moved: r.int() == 1, Wait: wait(r.int())}
	codes := r.string()
	if r.err == nil && len(codes) != n {
		r.fail("a digit per task", codes)
	}
	if r.err != nil {
		return dispatch.EnqueueReply{}, r.err
	}
	out.Duplicate = make([]bool, n)
	for i := range codes {
		out.Duplicate[i] = codes[i] >= '3'
	}
	return out, nil
}

// atOnce is a delay of 0 ms.
const atOnce = "0"

// dueArgs is the dueArg of each task, with spaces between, or atOnce for all.
func dueArgs(tasks []dispatch.Submission) string {
	later := false
	for i := range tasks {
		later = later || tasks[i].Delay != 0 || !tasks[i].ScheduleTime.IsZero()
	}
	if !later {
		return atOnce
	}
	var out strings.Builder
	out.Grow(16 * len(tasks))
	for i := range tasks {
		if i > 0 {
			out.WriteByte(' ')
		}
		out.WriteString(dueArg(&tasks[i].Task))
	}
	return out.String()
}

// dueArg is a delay in ms, or "@" and an instant.
func dueArg(t *dispatch.Task) string {
	if t.ScheduleTime.IsZero() {
		return strconv.FormatInt(ms(t.Delay), 10)
	}
	at := t.ScheduleTime.UnixMilli()
	if t.ScheduleTime.Nanosecond()%1e6 != 0 {
		at++ // never early
	}
	return "@" + strconv.FormatInt(at, 10)
}
