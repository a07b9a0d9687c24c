package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/dispatchkit/dispatch"
)

// bombs are msgpack of few bytes that makes a trusting reader allocate gigabytes, or run out of stack.
var bombs = []string{
	"\xdd\xff\xff\xff\xff", "\xdf\xff\xff\xff\xff", "\xc6\xff\xff\xff\xff", "\xdb\x7f\xff\xff\xff", "\xc9\xff\xff\xff\xff\x00",
	"\x81\x03\xdd\xff\xff\xff\xff", "\x81\x05\xc6\xff\xff\xff\xff", "\x81\x04\xdf\xff\xff\xff\xff", "\x81\x06\xdd\xff\xff\xff\xff",
	strings.Repeat("\x91", 1<<20) + "\x01", strings.Repeat("\x81\x01", 1<<19) + "\x01", "\x81\x03\xdd\x00\x0f\x00\x00" + strings.Repeat("\x80", 0xf0000),
}

// junk is a value that nobody has written who knows the format: random bytes, few or many, a number, nothing.
func junk(random *rand.Rand) string {
	sizes := []int{0, 1, 5, 16, 100, 4 << 10, 1 << 20, 8 << 20}
	b := make([]byte, sizes[random.IntN(len(sizes))])
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	return string(b)
}

// spoiled is what a value may become: a bomb behind its header, cut short, another version, or junk.
func spoiled(random *rand.Rand, value string, header int) string {
	header = min(header, len(value))
	switch random.IntN(5) {
	case 0, 1:
		return value[:header] + bombs[random.IntN(len(bombs))]
	case 2:
		return value[:random.IntN(len(value)+1)]
	case 3:
		return "\x63" + value[min(1, len(value)):]
	}
	return junk(random)
}

// The lengths of the headers that scripts read: of a record, and of progress.
const (
	recordHeader   = 16
	progressHeader = 5
)

// poison puts bad values into the keys of queues that workers serve, and into those of the fleet.
func (h *hostile) poison(ctx context.Context, raw redis.UniversalClient) error {
	random := h.Rand
	for i, queue := range poisonedQueues {
		if _, err := h.client.Client.EnsureQueue(ctx, dispatch.Queue{Name: queue}); err != nil {
			return err
		}
		if err := h.client.PauseQueue(ctx, queue); err != nil {
			return err
		}
		tasks := make([]dispatch.Task, 30)
		for j := range tasks {
			tasks[j] = Work{}.Task(queue)
		}
		results, err := h.client.Client.EnqueueMany(ctx, tasks)
		if err != nil {
			return err
		}
		for _, r := range results {
			if err := h.poisoners[i](ctx, raw, queue, string(r.ID), random); err != nil {
				return fmt.Errorf("poisoning queue %s: %w", queue, err)
			}
		}
	}
	for _, queue := range poisonedQueues {
		if err := raw.HDel(ctx, key(queue, "meta"), "paused").Err(); err != nil {
			return err
		}
	}
	return h.poisonFleet(ctx, raw)
}

// poisonedQueues are queues of which one thing each is bad.
var poisonedQueues = []string{"bad-records", "bad-progress", "bad-leases", "bad-settings", "bad-numbers", "bad-types"}

type poisoner func(ctx context.Context, raw redis.UniversalClient, queue, id string, random *rand.Rand) error

// poisoners are what is done to each task of poisonedQueues.
var poisoners = []poisoner{
	func(ctx context.Context, raw redis.UniversalClient, queue, id string, random *rand.Rand) error {
		record, err := raw.HGet(ctx, key(queue, "tasks"), id).Result()
		if err != nil {
			return err
		}
		return raw.HSet(ctx, key(queue, "tasks"), id, spoiled(random, record, recordHeader)).Err()
	},
	func(ctx context.Context, raw redis.UniversalClient, queue, id string, random *rand.Rand) error {
		return raw.HSet(ctx, key(queue, "state"), id, spoiled(random, "\x01\x00\x00\x00\x00\x80", progressHeader)).Err()
	},
	func(ctx context.Context, raw redis.UniversalClient, queue, id string, random *rand.Rand) error {
		_, err := raw.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.ZRem(ctx, key(queue, "due"), id)
			p.ZAdd(ctx, key(queue, "leased"), redis.Z{Score: float64(random.IntN(2)), Member: id})
			p.HSet(ctx, key(queue, "leases"), id, junk(random))
			return nil
		})
		return err
	},
	func(ctx context.Context, raw redis.UniversalClient, queue, _ string, random *rand.Rand) error {
		return raw.HSet(ctx, key(queue, "meta"), "config", spoiled(random, "\x01\x80", 1), "version", 1+random.IntN(1000)).Err()
	},
	func(ctx context.Context, raw redis.UniversalClient, queue, _ string, random *rand.Rand) error {
		fields := []string{"generation", "interval", "burst", "concurrent", "tat", "token", "tombstone", "created", "longest", "ttl", "slow_interval"}
		return raw.HSet(ctx, key(queue, "meta"), fields[random.IntN(len(fields))], "no number").Err()
	},
	func(ctx context.Context, raw redis.UniversalClient, queue, _ string, random *rand.Rand) error {
		parts := []string{"leased", "leases", "state", "names"}
		return raw.Set(ctx, key(queue, parts[random.IntN(len(parts))]), "of another type", 0).Err()
	},
}

// badQueues are names that stand in the lists of the fleet.
var badQueues = []string{"{~}", "a{b}", "", "no such queue", "\xff\x00", strings.Repeat("q", 100_000)}

// poisonFleet puts bad values into what all queues share, and messages into the channels.
func (h *hostile) poisonFleet(ctx context.Context, raw redis.UniversalClient) error {
	_, err := raw.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, name := range badQueues {
			p.ZAdd(ctx, key("~", "active"), redis.Z{Score: float64(i), Member: name})
			p.ZAdd(ctx, key("~", "expiring"), redis.Z{Score: float64(i), Member: name})
			p.SAdd(ctx, key("~", "queues"), name)
			p.HSet(ctx, key("~", "cron"), name, junk(h.Rand))
			p.HSet(ctx, key("~", "cron"), "entry"+fmt.Sprint(i), "1 1 0 0 0 "+bombs[i])
			p.ZAdd(ctx, key("~", "cron:next"), redis.Z{Score: float64(i), Member: name}, redis.Z{Score: 0, Member: "entry" + fmt.Sprint(i)})
			p.ZAdd(ctx, key("~", "workers"), redis.Z{Score: float64(i), Member: "ghost" + fmt.Sprint(i)})
			p.Set(ctx, key("~", "worker:ghost"+fmt.Sprint(i)), "\x01"+bombs[i], 0)
		}
		p.Set(ctx, key("~", "plan"), "\x011 1 "+bombs[h.Rand.IntN(len(bombs))], 0)
		for _, message := range []string{
			"", " ", "0", "x x x", "-1 mail", "99999999999999999999 mail", "0! " + strings.Repeat("m", 1<<20), "0x mail", "0c99999999999999999999 mail",
			"0*!c1x2 mail", "\x00\xff", strings.Repeat("0 mail ", 10_000), "0 {~} 0 ~plan 0 ~workers 0 ~cron 0 ~leader", junk(h.Rand),
		} {
			p.Publish(ctx, prefix+":wake", message)
			p.Publish(ctx, prefix+":ended", message)
		}
		return nil
	})
	return err
}

// clean takes away what was put in by hand and what it has spoiled.
func (h *hostile) clean(ctx context.Context, raw redis.UniversalClient) error {
	for _, part := range []string{"active", "expiring", "cron", "cron:next", "workers", "plan"} {
		if err := raw.Del(ctx, key("~", part)).Err(); err != nil {
			return err
		}
	}
	for i, name := range badQueues {
		raw.SRem(ctx, key("~", "queues"), name)
		raw.Del(ctx, key("~", "worker:ghost"+fmt.Sprint(i)))
	}
	for _, queue := range poisonedQueues {
		raw.SRem(ctx, key("~", "queues"), queue)
		for _, part := range []string{"due", "leased", "leases", "tasks", "state", "done", "dead", "cancelled", "names", "meta"} {
			if err := raw.Del(ctx, key(queue, part)).Err(); err != nil {
				return err
			}
		}
	}
	return nil
}
