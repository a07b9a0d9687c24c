package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/dispatchkit/dispatch/bench/chaos/servers"
)

func redisRestart() Scenario {
	return Scenario{
		Name: "redis-restart",
		Doc: "a server with an AOF is restarted under load and loads for a while, knows no script afterwards, and then is a replica " +
			"of nobody for a while: no call of a user fails, and nothing is done twice",
		AOF: true,
		// A small data set loads too fast for anybody to be told LOADING; a few hundred keys must be there well within a user's 5 s.
		Args:  []string{"--key-load-delay", "3000", "--loading-process-events-interval-bytes", "1024"},
		Bound: Bound{Recovery: 3 * time.Second},
		Run:   runRedisRestart,
	}
}

func runRedisRestart(ctx context.Context, r *Run) error {
	if _, err := r.Workers(ctx, 2, patient); err != nil {
		return err
	}
	var away absences
	u := r.Users(ctx, r.Client(), anyCall, 20*time.Millisecond, queueNames(12)...)
	for range Pick(r, 1, 8) {
		if !Sleep(ctx, time.Duration(1000+r.Rand.IntN(1000))*time.Millisecond) {
			return context.Cause(ctx)
		}
		if err := r.restart(ctx, &away); err != nil {
			return err
		}
		if !Sleep(ctx, time.Duration(500+r.Rand.IntN(500))*time.Millisecond) {
			return context.Cause(ctx)
		}
		if err := r.readOnly(ctx, time.Duration(1000+r.Rand.IntN(1000))*time.Millisecond); err != nil {
			return err
		}
	}
	return r.settleDown(ctx, u, away.excuse)
}

// restart ends the server in order and starts it again.
func (r *Run) restart(ctx context.Context, away *absences) error {
	node := r.Set.Primary()
	if err := rewriteAOF(ctx, node); err != nil {
		return err
	}
	r.Fault("restart", node.Addr())
	begun := time.Now()
	if err := node.Restart(); err != nil {
		return err
	}
	away.add(r, begun)
	if err := r.Recovered(ctx); err != nil {
		return err
	}
	return refusalsOf(node).require(nil, "LOADING", "NOSCRIPT")
}

// rewriteAOF has a server write its keys to the file and no command behind them, so that it loads keys: it answers while it does.
func rewriteAOF(ctx context.Context, node *servers.Node) error {
	if _, err := node.Command("CLIENT", "PAUSE", "10000", "WRITE"); err != nil { // the restart ends it
		return fmt.Errorf("CLIENT PAUSE: %w", err)
	}
	if _, err := node.Command("BGREWRITEAOF"); err != nil {
		return fmt.Errorf("BGREWRITEAOF: %w", err)
	}
	return Until(ctx, 10*time.Second, "the AOF is rewritten", func() (bool, error) {
		info, err := node.Command("INFO", "persistence")
		return strings.Contains(info, "aof_rewrite_in_progress:0") && strings.Contains(info, "aof_rewrite_scheduled:0"), err
	})
}

// readOnly makes the server a replica of a server that is not there, for a while.
func (r *Run) readOnly(ctx context.Context, lasts time.Duration) error {
	node := r.Set.Primary()
	before := refusalsOf(node)
	r.Fault("readonly", node.Addr())
	if _, err := node.Command("REPLICAOF", "127.0.0.1", "1"); err != nil {
		return fmt.Errorf("REPLICAOF: %w", err)
	}
	slept := Sleep(ctx, lasts)
	if _, err := node.Command("REPLICAOF", "NO", "ONE"); err != nil {
		return fmt.Errorf("REPLICAOF: %w", err)
	}
	if !slept {
		return context.Cause(ctx)
	}
	if err := r.Recovered(ctx); err != nil {
		return err
	}
	return refusalsOf(node).require(before, "READONLY")
}
