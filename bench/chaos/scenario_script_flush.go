package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/dispatchkit/dispatch/bench/chaos/servers"
)

func scriptFlush() Scenario {
	return Scenario{
		Name: "script-flush",
		Doc: "every 100 ms the server forgets all scripts and ends all connections, under load: no call of a user fails, and nothing " +
			"is done twice",
		Bound: Bound{Recovery: 4 * time.Second},
		Run:   runScriptFlush,
	}
}

func runScriptFlush(ctx context.Context, r *Run) error {
	if _, err := r.Workers(ctx, 2, patient); err != nil {
		return err
	}
	u := r.Users(ctx, r.Client(), anyCall, 10*time.Millisecond, queueNames(8)...)
	node := r.Set.Primary()
	before := refusalsOf(node)
	r.Fault("flush", node.Addr())
	rounds, ended := 0, 0
	for until := time.Now().Add(Pick(r, 7*time.Second, time.Minute)); time.Now().Before(until); rounds++ {
		n, err := flush(node)
		if err != nil {
			return err
		}
		ended += n
		if !Sleep(ctx, time.Duration(80+r.Rand.IntN(40))*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
	after := refusalsOf(node)
	r.Note("%d rounds, %d connections ended; refusals %v", rounds, ended, after)
	if err := after.require(before, "NOSCRIPT"); err != nil {
		return err
	}
	if ended < rounds {
		return fmt.Errorf("%d connections were ended in %d rounds, so that most of the time nobody was hit", ended, rounds)
	}
	return r.settleDown(ctx, u, nil)
}

// flush has a server forget all scripts and end all connections, and says how many they were.
func flush(node *servers.Node) (ended int, err error) {
	if _, err := node.Command("SCRIPT", "FLUSH"); err != nil {
		return 0, fmt.Errorf("SCRIPT FLUSH: %w", err)
	}
	for _, kind := range []string{"normal", "pubsub"} {
		reply, err := node.Command("CLIENT", "KILL", "TYPE", kind)
		if err != nil {
			return 0, fmt.Errorf("CLIENT KILL: %w", err)
		}
		n, err := strconv.Atoi(reply)
		if err != nil {
			return 0, fmt.Errorf("CLIENT KILL answers %q", reply)
		}
		ended += n
	}
	return ended, nil
}
