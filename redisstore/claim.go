package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/cluster"
)

// maxScriptBytes bounds the records that one script call reads: it holds the server for about a millisecond.
const maxScriptBytes = 512 << 10

// Claim implements dispatch.Claimer. After an uncertain error the caller repeats it under the same Seq.
func (s *Store) Claim(ctx context.Context, r dispatch.ClaimRequest) (*dispatch.ClaimReply, error) {
	if r.Budget < 1 || r.Budget > maxScriptItems {
		return nil, fmt.Errorf("redisstore: claim of %d tasks, not 1 to %d", r.Budget, maxScriptItems)
	}
	k := s.queueKeys(r.Queue)
	keys := []string{k.due, k.leased, k.leases, k.tasks, k.state, k.names, k.meta, s.claimMemo(r.Queue, r.Worker)}
	v, err := s.run(ctx, onlyRefused, s.scripts.claim, keys,
		s.now(), string(r.Worker), r.Seq, flag(r.Repeat), r.Budget, ms(r.Grace), maxScriptBytes, r.Version, freeArg(r.Free), r.Skip,
		ms(r.Tombstone), flag(r.SkipPassed))
	if err != nil {
		return nil, err
	}
	in := replyOf(s.scripts.claim, v)
	switch code := in.int(); {
	case in.err != nil:
		return nil, in.err
	case code == 0:
		return nil, dispatch.ErrQueueNotFound
	case code < 0: // a later claim has run: this one leases nothing, and never will
		return &dispatch.ClaimReply{Next: -1, LeaseEnd: -1}, nil
	}
	return claimReply(in, r.Queue)
}

func claimReply(in *reply, queue string) (*dispatch.ClaimReply, error) {
	now := in.int()
	out := &dispatch.ClaimReply{Next: wait(in.int()), LeaseEnd: wait(in.int())}
	out.Block, out.Wait = dispatch.Block(in.string()), wait(in.int())
	settings := in.array()
	out.Skip, out.Urgent = int(in.int()), in.int() == 1
	var unreadable error
	if settings.left() > 0 {
		version, config, paused, created := settings.int(), settings.string(), settings.int(), settings.int()
		in.keep(settings.err)
		q, err := decodeSettings(config)
		if err != nil {
			// Settings of a newer version: without them no task can be run as the queue wants it.
			unreadable, q = fmt.Errorf("redisstore: settings of queue %s: %w", queue, err), new(dispatch.Queue)
		}
		q.Name, q.Version, q.Paused, q.CreatedAt = queue, version, paused == 1, millis(created)
		if unreadable == nil {
			out.Settings = q
		}
	}
	ids, leases, dues := in.string(), in.string(), in.string()
	records, progresses := in.array().items, in.array().items
	if len(progresses) == 0 {
		progresses = make([]any, len(records))
	}
	if len(progresses) != len(records) {
		in.fail("as much progress as records", progresses)
		return nil, in.err
	}
	out.Leased = make([]dispatch.Leased, len(records))
	for i := range records {
		var id, lease, due string
		id, ids, _ = strings.Cut(ids, " ")
		lease, leases, _ = strings.Cut(leases, "\n")
		due, dues, _ = strings.Cut(dues, " ")
		score, err := strconv.ParseInt(due, 10, 64)
		record, whole := records[i].(string)
		progress, _ := progresses[i].(string)
		if err != nil || !whole {
			in.fail("with a due time and a record for each task", due)
			break
		}
		leased := &out.Leased[i]
		*leased = readLease(queue, strings.Clone(id), lease, record, progress) // an ID that somebody keeps is not to keep them all
		leased.At, leased.Due, leased.Urgent = millis(now), millis(dueTime(score)), score < 0
		if leased.Err == nil {
			leased.Err = unreadable
		}
	}
	return out, in.err
}

// readLease makes a leased task of what the store holds. What cannot be read becomes its Err: it is the store's data,
// and another version of the program may read it.
func readLease(queue, id, lease, record, progress string) dispatch.Leased {
	out := dispatch.Leased{Lease: dispatch.Lease{Fence: lease}}
	out.Lease.Token, out.Worker, out.Err = parseLease(lease)
	if out.Err == nil {
		out.Err = decodeRecord(record, &out.Task, &out.Named)
		out.Derived, out.Window, out.CreatedAt = recordDerived(record), recordWindow(record), recordCreated(record)
	}
	if out.Err == nil {
		out.Progress, out.Err = decodeProgress(progress)
	}
	if out.Err != nil {
		out.Task, out.Progress = dispatch.Task{}, dispatch.Progress{}
	}
	out.Task.ID, out.Task.Queue = dispatch.TaskID(id), queue
	return out
}

// parseLease reads the value that the claim script writes: token, worker, claim number, attempt.
func parseLease(lease string) (token int64, worker cluster.WorkerID, err error) {
	first, rest, _ := strings.Cut(lease, " ")
	holder, _, _ := strings.Cut(rest, " ")
	token, err = strconv.ParseInt(first, 10, 64)
	if err != nil || holder == "" {
		return 0, "", fmt.Errorf("redisstore: lease %.60q cannot be read", lease)
	}
	return token, cluster.WorkerID(holder), nil
}

func flag(on bool) string {
	if on {
		return "1"
	}
	return "0"
}

// fresh is what lib_clock.lua calls so.
const fresh = 1_000_000_000_000_000

// dueTime is the due time that a score stands for. One below zero is that of a task that is to be run at once: it is when
// that was asked for.
func dueTime(score int64) int64 {
	switch {
	case score >= 0:
		return score
	case -score >= fresh:
		return -score - fresh
	}
	return -score
}
