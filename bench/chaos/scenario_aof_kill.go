package main

import (
	"context"
	"strings"
	"time"

	"github.com/dispatchkit/dispatch/bench/chaos/servers"
)

func aofKill() Scenario {
	return Scenario{
		Name: "aof-kill",
		Doc: "a server with an AOF is killed by SIGKILL under load and started again, with appendfsync always at any time, and with " +
			"everysec when it does not flush: nothing that was acknowledged is lost, and nothing is done twice",
		AOF:   true,
		Bound: Bound{Recovery: 3 * time.Second},
		Run:   runAOFKill,
	}
}

func runAOFKill(ctx context.Context, r *Run) error {
	if _, err := r.Workers(ctx, 2, patient); err != nil {
		return err
	}
	node := r.Set.Primary()
	var away absences
	u := r.Users(ctx, r.Client(), anyCall, 5*time.Millisecond, queueNames(12)...)
	for round := range Pick(r, 4, 25) {
		policy := []string{"everysec", "always"}[round%2]
		if _, err := node.Command("CONFIG", "SET", "appendfsync", policy); err != nil {
			return err
		}
		if !Sleep(ctx, time.Duration(700+r.Rand.IntN(1500))*time.Millisecond) {
			return context.Cause(ctx)
		}
		if policy == "everysec" {
			if err := afterFsync(ctx, node); err != nil {
				return err
			}
		}
		begun := time.Now()
		r.Fault("kill", node.Addr())
		node.Kill()
		if !Sleep(ctx, time.Duration(r.Rand.IntN(1000))*time.Millisecond) {
			return context.Cause(ctx)
		}
		if err := node.Restart(); err != nil {
			return err
		}
		away.add(r, begun)
		if err := r.Recovered(ctx); err != nil {
			return err
		}
	}
	return r.settleDown(ctx, u, away.excuse)
}

// afterFsync returns when no fsync of the AOF is under way. While one is, a server with appendfsync everysec holds back what it
// writes, for up to two seconds, and acknowledges it all the same: a kill then loses what only the process had.
func afterFsync(ctx context.Context, node *servers.Node) error {
	return Until(ctx, 20*time.Second, "no fsync is under way", func() (bool, error) {
		info, err := node.Command("INFO", "persistence")
		return strings.Contains(info, "aof_pending_bio_fsync:0"), err
	})
}
