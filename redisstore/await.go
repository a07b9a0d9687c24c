package redisstore

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/dispatchkit/dispatch"
)

// awaitedFor is how long a queue stays marked as one whose ends are told. A mark is renewed in its second half, so that
// the least a caller gets is half of this.
const awaitedFor = time.Minute

// Await implements dispatch.Awaiter.
func (s *Store) Await(ctx context.Context, queue string, ids []dispatch.TaskID) ([]dispatch.TaskID, error) {
	if len(ids) == 0 || len(ids) > maxScriptItems {
		return nil, fmt.Errorf("redisstore: await of %d tasks, not 1 to %d", len(ids), maxScriptItems)
	}
	args := make([]any, 2, 2+len(ids))
	args[0], args[1] = s.now(), ms(awaitedFor)
	for _, id := range ids {
		args = append(args, string(id))
	}
	k := s.queueKeys(queue)
	v, err := s.run(ctx, evenUncertain, s.scripts.await, []string{k.due, k.leased, k.meta}, args...)
	if err != nil {
		return nil, err
	}
	codes, _ := v.(string)
	over, err := digits(codes, len(ids))
	if err != nil {
		return nil, err
	}
	var ended []dispatch.TaskID
	for i, id := range ids {
		if over[i] {
			ended = append(ended, id)
		}
	}
	return ended, nil
}

// ListenEnded implements dispatch.Awaiter.
func (s *Store) ListenEnded(ctx context.Context, joined func(), ended func(queue string, ids []dispatch.TaskID)) error {
	return s.subscribe(ctx, s.endedChannel(), joined, func(message string) {
		if queue, ids := parseEnded(message); len(ids) > 0 {
			ended(queue, ids)
		}
	})
}

// parseEnded reads a message of settle.lua or delete.lua: a queue and the IDs of tasks, with spaces between. Anybody may
// publish to the channel; whoever hears of a task reads it.
func parseEnded(message string) (queue string, ids []dispatch.TaskID) {
	for word := range strings.FieldsSeq(message) {
		if queue == "" {
			queue = word
			continue
		}
		ids = append(ids, dispatch.TaskID(word))
	}
	return queue, ids
}
