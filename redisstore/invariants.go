package redisstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// CheckInvariants reads everything that the store holds of a queue and returns what is wrong with it, or nil. It is for
// tests: it is exact only while nothing else works on the queue, and it reads every task.
//
//   - A task ID of tasks is in exactly one of due, leased, done, dead, cancelled, and none of them has an ID without a record.
//   - leased and leases hold the same IDs; the tokens of leases differ and none is above the last one given out.
//   - Nothing has progress that has no record.
//   - No record is longer than the longest that the queue has noted.
//   - A queue that has anything has its settings, and is listed.
func (s *Store) CheckInvariants(ctx context.Context, queue string) error {
	k := s.queueKeys(queue)
	var tasks, state, leases, meta *redis.MapStringStringCmd
	var due, leased, done, dead, cancelled *redis.StringSliceCmd
	var names *redis.IntCmd
	var listed *redis.BoolCmd
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		tasks, state, leases = p.HGetAll(ctx, k.tasks), p.HGetAll(ctx, k.state), p.HGetAll(ctx, k.leases)
		due, leased = p.ZRange(ctx, k.due, 0, -1), p.ZRange(ctx, k.leased, 0, -1)
		done, dead = p.ZRange(ctx, k.done, 0, -1), p.ZRange(ctx, k.dead, 0, -1)
		cancelled = p.ZRange(ctx, k.cancelled, 0, -1)
		names, meta = p.ZCard(ctx, k.names), p.HGetAll(ctx, k.meta)
		listed = p.SIsMember(ctx, s.queuesKey(), queue)
		return nil
	})
	if err != nil {
		return err
	}
	c := checker{queue: queue}
	c.places(tasks.Val(), map[string][]string{
		"due": due.Val(), "leased": leased.Val(), "done": done.Val(), "dead": dead.Val(), "cancelled": cancelled.Val(),
	})
	c.leases(leases.Val(), leased.Val(), meta.Val()["token"])
	for id := range state.Val() {
		if _, ok := tasks.Val()[id]; !ok {
			c.wrong("task %s has progress and no record", id)
		}
	}
	longest, _ := strconv.Atoi(meta.Val()["longest"])
	for id, record := range tasks.Val() {
		if len(record) > longest {
			c.wrong("task %s has a record of %d bytes, and the longest is noted with %d", id, len(record), longest)
		}
	}
	if len(tasks.Val())+int(names.Val()) > 0 && meta.Val()["generation"] == "" {
		c.wrong("it has tasks or names and no settings")
	}
	if len(meta.Val()) > 0 && !listed.Val() {
		c.wrong("it is not listed")
	}
	return errors.Join(c.found...)
}

type checker struct {
	queue string
	found []error
}

func (c *checker) wrong(format string, args ...any) {
	c.found = append(c.found, fmt.Errorf("queue %s: %s", c.queue, fmt.Sprintf(format, args...)))
}

// places checks that every record is in exactly one index, and every indexed ID has a record.
func (c *checker) places(tasks map[string]string, indexes map[string][]string) {
	place := make(map[string]string)
	for _, name := range slices.Sorted(maps.Keys(indexes)) {
		for _, id := range indexes[name] {
			if other, twice := place[id]; twice {
				c.wrong("task %s is in %s and in %s", id, other, name)
			}
			place[id] = name
			if _, ok := tasks[id]; !ok {
				c.wrong("task %s is in %s and has no record", id, name)
			}
		}
	}
	for id := range tasks {
		if place[id] == "" {
			c.wrong("task %s is nowhere", id)
		}
	}
}

func (c *checker) leases(leases map[string]string, leased []string, lastToken string) {
	last, _ := strconv.ParseInt(lastToken, 10, 64)
	tokens := make(map[int64]string)
	for id, lease := range leases {
		if !slices.Contains(leased, id) {
			c.wrong("task %s has a lease without an end", id)
		}
		token, _, err := parseLease(lease)
		if err != nil {
			c.wrong("task %s: %v", id, err)
		}
		if other, twice := tokens[token]; twice {
			c.wrong("tasks %s and %s have the same token", id, other)
		}
		if tokens[token] = id; token > last {
			c.wrong("task %s has token %d, above the last one, %d", id, token, last)
		}
	}
	for _, id := range leased {
		if _, ok := leases[id]; !ok {
			c.wrong("task %s is leased to nobody", id)
		}
	}
}
