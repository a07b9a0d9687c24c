package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"
)

// The limits are what Redis itself can do with the same payloads and nothing of what makes them tasks: no IDs, leases,
// counters or retries.

const (
	rawKey = "raw"
	// rawBatch is as many commands as Dispatch puts tasks into one script.
	rawBatch = 150
)

// rawClient has a connection for each caller.
func rawClient(e *env) (*redis.Client, error) {
	options, err := redis.ParseURL(e.redisURL)
	if err != nil {
		return nil, err
	}
	options.PoolSize = callers
	return redis.NewClient(options), nil
}

// pushSingle pushes onto a list, one command a trip, from 64 goroutines.
func pushSingle(ctx context.Context, e *env, n int) (float64, error) {
	client, err := rawClient(e)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	begin := time.Now()
	if err := concurrently(ctx, callers, n, func(ctx context.Context, _ int) error {
		return client.RPush(ctx, rawKey, payload).Err()
	}); err != nil {
		return 0, err
	}
	elapsed := time.Since(begin)
	return float64(n) / elapsed.Seconds(), requireLength(client.LLen(ctx, rawKey), n)
}

// pushMany pushes onto a list, 150 commands a trip and three trips at once, as EnqueueMany does.
func pushMany(ctx context.Context, e *env, n int) (float64, error) {
	client, err := rawClient(e)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	begin := time.Now()
	if err := concurrently(ctx, 3, n/rawBatch, func(ctx context.Context, _ int) error {
		_, err := client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for range rawBatch {
				p.RPush(ctx, rawKey, payload)
			}
			return nil
		})
		return err
	}); err != nil {
		return 0, err
	}
	elapsed := time.Since(begin)
	n = n / rawBatch * rawBatch
	return float64(n) / elapsed.Seconds(), requireLength(client.LLen(ctx, rawKey), n)
}

// readStream has a group of two consumers read a stream to its end, 150 entries a trip, each trip acknowledging those of
// the one before.
func readStream(ctx context.Context, e *env, n int) (float64, error) {
	const group = "workers"
	client, err := rawClient(e)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	if err := fillStream(ctx, client, n); err != nil {
		return 0, err
	}
	if err := client.XGroupCreate(ctx, rawKey, group, "0").Err(); err != nil {
		return 0, err
	}
	read := make([]int, 2)
	consumers, stop := errgroup.WithContext(ctx)
	begin := time.Now()
	for i := range read {
		consumers.Go(func() error {
			var ids []string
			for {
				entries, err := ackAndRead(stop, client, group, fmt.Sprint("consumer-", i), ids)
				if err != nil || len(entries) == 0 {
					return err
				}
				ids = ids[:0]
				for _, entry := range entries {
					ids = append(ids, entry.ID)
				}
				read[i] += len(ids)
			}
		})
	}
	if err := consumers.Wait(); err != nil {
		return 0, err
	}
	elapsed := time.Since(begin)
	pending, err := client.XPending(ctx, rawKey, group).Result()
	if err == nil && (pending.Count != 0 || read[0]+read[1] != n) {
		err = fmt.Errorf("%d entries were read of %d, %d are not acknowledged", read[0]+read[1], n, pending.Count)
	}
	return float64(n) / elapsed.Seconds(), err
}

func fillStream(ctx context.Context, client *redis.Client, n int) error {
	for left := n; left > 0; left -= rawBatch {
		if _, err := client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for range min(left, rawBatch) {
				p.XAdd(ctx, &redis.XAddArgs{Stream: rawKey, Values: []any{"payload", payload}})
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// ackAndRead returns no entries at the end of the stream.
func ackAndRead(ctx context.Context, client *redis.Client, group, consumer string, done []string) ([]redis.XMessage, error) {
	var read *redis.XStreamSliceCmd
	_, err := client.Pipelined(ctx, func(p redis.Pipeliner) error {
		if len(done) > 0 {
			p.XAck(ctx, rawKey, group, done...)
		}
		read = p.XReadGroup(ctx, &redis.XReadGroupArgs{
			Group: group, Consumer: consumer, Streams: strings.Fields(rawKey + " >"), Count: rawBatch, Block: -1,
		})
		return nil
	})
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return read.Val()[0].Messages, nil
}

func requireLength(length *redis.IntCmd, n int) error {
	if err := length.Err(); err != nil {
		return err
	}
	if length.Val() != int64(n) {
		return fmt.Errorf("the list has %d elements, want %d", length.Val(), n)
	}
	return nil
}
