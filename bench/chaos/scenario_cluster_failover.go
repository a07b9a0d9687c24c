package main

import (
	"context"
	"fmt"
	"time"

	"github.com/dispatchkit/dispatch/bench/chaos/servers"
)

func clusterFailover() Scenario {
	return Scenario{
		Name: "cluster-failover",
		Doc: "replicas of a cluster become masters under load, by agreement and by TAKEOVER: no call of a user fails within 5 s; by " +
			"agreement nothing is lost or done twice, and by TAKEOVER only what the old master took meanwhile",
		Servers: Cluster,
		Args:    fullCoverage,
		Bound:   Bound{Recovery: 3 * time.Second, MayLose: (*Run).Forgotten, Duplicates: (*Run).Allowed, Unexplained: (*Run).Allowed},
		Run:     runClusterFailover,
	}
}

func runClusterFailover(ctx context.Context, r *Run) error {
	if _, err := r.Workers(ctx, 2, patient); err != nil {
		return err
	}
	queues := queueNames(12)
	u := r.Users(ctx, r.Client(), anyCall, 10*time.Millisecond, queues...)
	before := refusalsOf(r.Set.Nodes...)
	for range Pick(r, 2, 12) {
		for _, how := range []servers.Failover{servers.Graceful, servers.Takeover} {
			if !Sleep(ctx, time.Duration(500+r.Rand.IntN(1000))*time.Millisecond) {
				return context.Cause(ctx)
			}
			if err := r.failOver(ctx, how, queues); err != nil {
				return fmt.Errorf("failover %s: %w", how, err)
			}
		}
	}
	after := refusalsOf(r.Set.Nodes...)
	r.Note("refusals %v", after)
	if err := after.require(before, "MOVED", "NOSCRIPT"); err != nil {
		return err
	}
	return r.settleDown(ctx, u, nil)
}

// healthyLag is how long what a master has acknowledged may be on its way to its replica, on a machine that is busy.
const healthyLag = 200 * time.Millisecond

// failOver has the replica of a random master take its place.
func (r *Run) failOver(ctx context.Context, how servers.Failover, queues []string) error {
	old, err := r.otherMaster(nil)
	if err != nil {
		return err
	}
	hit, _, err := r.split(old, append(queues, probeQueue))
	if err != nil {
		return err
	}
	replica, err := r.Set.ReplicaOf(old)
	if err != nil {
		return err
	}
	r.Fault("failover", old.Addr())
	begun := time.Now()
	if err := r.Set.FailOver(ctx, replica, how); err != nil {
		return err
	}
	if how == servers.Takeover {
		// Until the old master hears that it is none, it takes what nobody will know of.
		if err := awaitReplica(ctx, old); err != nil {
			return err
		}
		r.MayForget(begun.Add(-healthyLag), time.Now().Add(lateWrite), true, hit)
		r.Allow(takeoverDuplicates)
	}
	r.Note("failover %q of %s to %s took %v", how, old.Addr(), replica.Addr(), time.Since(begun))
	if err := r.Recovered(ctx); err != nil {
		return err
	}
	return r.Set.WaitReady(ctx)
}

// takeoverDuplicates is how many attempts a TAKEOVER may have done again: those that two workers can hold, each running and as many
// waiting.
const takeoverDuplicates = 2 * 2 * 32

// awaitReplica waits until a node knows that it is a replica.
func awaitReplica(ctx context.Context, n *servers.Node) error {
	return Until(ctx, 10*time.Second, "the old master follows", func() (bool, error) {
		role, err := n.Command("ROLE")
		return len(role) >= 5 && role[:5] == "slave", err
	})
}
