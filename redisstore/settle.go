package redisstore

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/dispatchkit/dispatch"
)

var outcomeWords = map[dispatch.Outcome]string{
	dispatch.Succeeded: "ok", dispatch.Retry: "retry", dispatch.Dead: "dead", dispatch.Released: "release",
}

// Settle implements dispatch.Settler.
func (s *Store) Settle(ctx context.Context, r dispatch.SettleRequest) (dispatch.SettleReply, error) {
	if len(r.Items) == 0 || len(r.Items) > maxScriptItems {
		return dispatch.SettleReply{}, fmt.Errorf("redisstore: settle of %d tasks, not 1 to %d", len(r.Items), maxScriptItems)
	}
	args := make([]any, 7, 7+3*len(r.Items))
	args[0], args[1] = s.now(), r.Seq
	if r.Ended { // a sweep, which has no number
		args[1] = -1
	}
	args[2], args[3], args[4] = r.Traffic.Sent, r.Traffic.Failed, r.Traffic.Congested
	args[5], args[6] = s.endedChannel(), r.Queue
	ends, err := endings(r.Items)
	if err != nil {
		return dispatch.SettleReply{}, err
	}
	for i := range r.Items {
		item := &r.Items[i]
		args = append(args, (*string)(&item.ID), &item.Lease.Fence, &ends[i]) // pointers cost no allocation each
	}
	k := s.queueKeys(r.Queue)
	keys := []string{k.due, k.leased, k.leases, k.tasks, k.state, k.done, k.dead, k.names, k.meta, s.settleMemo(r.Queue, r.Worker)}
	v, err := s.run(ctx, evenUncertain, s.scripts.settle, keys, args...)
	if err != nil {
		return dispatch.SettleReply{}, err
	}
	in := replyOf(s.scripts.settle, v)
	in.int()
	codes := in.string()
	out := dispatch.SettleReply{Moved: in.int() == 1, Wait: wait(in.int())}
	expires := wait(in.int())
	if in.err != nil {
		return dispatch.SettleReply{}, in.err
	}
	if out.Dropped, err = digits(strings.NewReplacer("1", "0", "2", "1").Replace(codes), len(r.Items)); err != nil {
		return dispatch.SettleReply{}, err
	}
	if out.Applied, err = digits(strings.ReplaceAll(codes, "2", "1"), len(r.Items)); err != nil {
		return dispatch.SettleReply{}, err
	}
	s.noteExpiry(ctx, r.Queue, expires)
	return out, nil
}

// endings says for each attempt what became of it, as the script reads it. Most have had the same end.
func endings(items []dispatch.Settlement) ([]string, error) {
	out := make([]string, len(items))
	for i := range items {
		item := &items[i]
		if i > 0 && sameEnding(item, &items[i-1]) {
			out[i] = out[i-1]
			continue
		}
		word := outcomeWords[item.Outcome]
		if item.GivenBack && item.Outcome == dispatch.Released {
			word = "return"
		}
		if word == "" {
			return nil, fmt.Errorf("redisstore: outcome %q cannot be stored", item.Outcome)
		}
		out[i] = fmt.Sprint(word, " ", max(ms(item.After), 0), " ", max(ms(item.Tombstone), 0))
		if item.Progress != nil {
			progress, err := encodeProgress(item.Progress)
			if err != nil {
				return nil, err
			}
			out[i] += " " + progress
		}
	}
	return out, nil
}

func sameEnding(a, b *dispatch.Settlement) bool {
	return a.Progress == nil && b.Progress == nil && a.Outcome == b.Outcome && a.GivenBack == b.GivenBack &&
		a.After == b.After && a.Tombstone == b.Tombstone
}

// Extend implements dispatch.Settler.
func (s *Store) Extend(ctx context.Context, queue string, extensions []dispatch.Extension) ([]bool, error) {
	if len(extensions) == 0 || len(extensions) > maxScriptItems {
		return nil, fmt.Errorf("redisstore: extend of %d leases, not 1 to %d", len(extensions), maxScriptItems)
	}
	args := make([]any, 1, 1+3*len(extensions))
	args[0] = s.now()
	for _, e := range extensions {
		args = append(args, string(e.ID), e.Lease.Fence, ms(e.For))
	}
	k := s.queueKeys(queue)
	v, err := s.run(ctx, evenUncertain, s.scripts.extend, []string{k.leased, k.leases}, args...)
	if err != nil {
		return nil, err
	}
	codes, _ := v.(string)
	return digits(codes, len(extensions))
}

// noteExpiry notes when a queue has something to clean up, unless sooner is noted. It does not hold its caller up for long.
// A note that is lost costs memory for a while and nothing else: the next settle that retains something in the queue, once
// what expired is five minutes over, brings a new one.
func (s *Store) noteExpiry(ctx context.Context, queue string, in time.Duration) {
	if in < 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	_, err := s.run(ctx, evenUncertain, s.scripts.announce, []string{s.expiringKey()}, s.now(), "", "", ms(in), queue)
	if err != nil {
		s.log.Warn("redisstore: the time for a queue's clean-up was not noted", "queue", queue, "error", err)
	}
}

// Holds implements dispatch.Settler.
func (s *Store) Holds(ctx context.Context, queue string, leases []dispatch.Held) ([]bool, error) {
	ids := make([]string, len(leases))
	for i, l := range leases {
		ids[i] = string(l.ID)
	}
	var fences []any
	err := s.persist(ctx, evenUncertain, func(ctx context.Context) error {
		var err error
		fences, err = s.client.HMGet(ctx, s.queueKeys(queue).leases, ids...).Result()
		return err
	})
	if err != nil {
		return nil, err
	}
	held := make([]bool, len(leases))
	for i := range leases {
		held[i] = fences[i] == any(leases[i].Lease.Fence)
	}
	return held, nil
}
