package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/dispatchkit/dispatch/internal/redistest"
	"github.com/dispatchkit/dispatch/redisstore"
)

// thirtyQueues spread over the slots of three masters, about ten to each.
var thirtyQueues = func() []string {
	names := make([]string, 30)
	for i := range names {
		names[i] = fmt.Sprintf("bench-%02d", i)
	}
	return names
}()

// singlePerTask is the processor time of one server per no-op task of 30 queues.
func singlePerTask(ctx context.Context, e *env, store *redisstore.Store, n int) (float64, error) {
	w, err := backlog{n: n, queues: thirtyQueues}.work(ctx, store, e.redis())
	return w.redisMicros(), err
}

// clusterPerTask is the processor time of three masters together per no-op task of 30 queues. They run only meanwhile: even
// idle, the nodes of a cluster talk to each other.
func clusterPerTask(ctx context.Context, _ *env, n int) (_ float64, err error) {
	masters, err := redistest.Launch(redistest.Config{Masters: 3})
	if err != nil {
		return 0, err
	}
	defer masters.Stop()
	var nodes []*redis.Client
	for _, addr := range masters.Addrs {
		node := redis.NewClient(&redis.Options{Addr: addr})
		defer node.Close()
		nodes = append(nodes, node)
	}
	store, err := redisstore.Open(ctx, "redis://"+strings.Join(masters.Addrs, ","), redisstore.Options{})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	w, err := backlog{n: n, queues: thirtyQueues}.work(ctx, store, nodes...)
	return w.redisMicros(), err
}
