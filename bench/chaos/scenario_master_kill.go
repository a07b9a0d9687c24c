package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/dispatchkit/dispatch/bench/chaos/audit"
	"github.com/dispatchkit/dispatch/bench/chaos/servers"
)

func masterKill() Scenario {
	return Scenario{
		Name: "master-kill",
		Doc: "a master of a cluster is killed by SIGKILL under fifty queues: those of the other masters go on, its own are back when its " +
			"replica has its place, and only what it acknowledged in its last second may be lost",
		Servers: Cluster,
		Args:    fullCoverage,
		Bound:   Bound{Recovery: masterBack, MayLose: (*Run).Forgotten, Duplicates: (*Run).Allowed, Unexplained: (*Run).Allowed},
		Run:     runMasterKill,
	}
}

const (
	// masterBack is how long the queues of a master may stand still: the others call it failed after one to two seconds, vote
	// for its replica within another, and clients learn of that within a third.
	masterBack = 6 * time.Second
	// killWindow is how far a replica that is well may lag behind, at the very most.
	killWindow = time.Second
	// sparedDelay is how long a task of another master's queue may wait meanwhile. If the fleet's keys are on the victim,
	// nobody can be told of new tasks, and it is as long as the queues of the victim.
	sparedDelay = 2 * time.Second
)

// masterKilled is what one kill has hit.
type masterKilled struct {
	at, back    time.Time // of the last queue's first call that was answered
	hit, spared []string
	fleet       bool // it had the keys of the fleet
}

func runMasterKill(ctx context.Context, r *Run) error {
	if _, err := r.Workers(ctx, 2, patient); err != nil {
		return err
	}
	u := r.Users(ctx, r.Client(), enqueueNow, 40*time.Millisecond, queueNames(50)...)
	var kills []masterKilled
	for range Pick(r, 1, 8) {
		if !Sleep(ctx, time.Duration(1500+r.Rand.IntN(1000))*time.Millisecond) {
			return context.Cause(ctx)
		}
		k, err := r.killMaster(ctx, u, queueNames(50))
		if err != nil {
			return err
		}
		kills = append(kills, *k)
	}
	excuse := func(c userCalled) bool {
		return slices.ContainsFunc(kills, func(k masterKilled) bool {
			return slices.Contains(k.hit, c.queue) && c.ended.After(k.at) && c.begun.Before(k.at.Add(masterBack))
		})
	}
	if err := r.goHome(ctx, u, excuse); err != nil {
		return err
	}
	h, err := audit.Read(r.ledgerDir())
	if err != nil {
		return err
	}
	for _, k := range kills {
		if err := r.judgeKill(h, k); err != nil {
			return err
		}
	}
	return nil
}

// killMaster kills a random master, waits until its queues take tasks again, and brings it back as a replica.
func (r *Run) killMaster(ctx context.Context, u *users, queues []string) (*masterKilled, error) {
	victim, err := r.otherMaster(nil)
	if err != nil {
		return nil, err
	}
	k := new(masterKilled)
	if k.hit, k.spared, err = r.split(victim, queues); err != nil {
		return nil, err
	}
	if len(k.hit) == 0 || len(k.spared) == 0 {
		return nil, fmt.Errorf("of fifty queues %d are on %s", len(k.hit), victim.Addr())
	}
	fleet, err := r.Set.MasterOf(key("~", "workers"))
	if err != nil {
		return nil, err
	}
	k.fleet = fleet == victim
	k.at = time.Now()
	r.Fault("kill", victim.Addr())
	victim.Kill()
	r.MayForget(k.at.Add(-killWindow), k.at.Add(lateWrite), true, k.hit)
	r.Allow(takeoverDuplicates)
	err = Until(ctx, 4*masterBack, "the queues of the killed master take tasks", func() (bool, error) {
		served := map[string]bool{}
		for _, c := range u.Calls(func(c userCalled) bool { return c.err == nil && c.begun.After(k.at) }) {
			served[c.queue] = true
		}
		return !slices.ContainsFunc(k.hit, func(q string) bool { return !served[q] }), nil
	})
	if err != nil {
		return nil, err
	}
	k.back = time.Now()
	r.Note("%d of 50 queues were on %s, those of the fleet too: %v; they take tasks again after %v",
		len(k.hit), victim.Addr(), k.fleet, k.back.Sub(k.at))
	return k, r.revive(ctx, victim)
}

// revive starts a killed node again and waits until it is a replica in step.
func (r *Run) revive(ctx context.Context, n *servers.Node) error {
	if err := r.Recovered(ctx); err != nil {
		return err
	}
	if err := n.Restart(); err != nil {
		return err
	}
	if err := r.Set.WaitReady(ctx); err != nil {
		return err
	}
	return r.Recovered(ctx)
}

// judgeKill reads in the ledger how long the queues of the killed master have stood still, and whether the others went on.
func (r *Run) judgeKill(h *audit.History, k masterKilled) error {
	hit := ofQueues(pickUps(h, k.at.Add(lateWrite), k.at.Add(4*masterBack)), k.hit)
	for _, queue := range k.hit {
		if len(hit[queue]) == 0 {
			return fmt.Errorf("queue %s, whose master was killed, is not served again", queue)
		}
		r.Took(hit[queue][0].started.Sub(k.at))
	}
	limit := sparedDelay
	if k.fleet {
		limit = masterBack
	}
	spared := ofQueues(pickUps(h, k.at, k.back), k.spared)
	for _, queue := range k.spared {
		if len(spared[queue]) == 0 {
			return fmt.Errorf("queue %s, whose master was not killed, stood still", queue)
		}
		slowest := slices.MaxFunc(spared[queue], func(a, b pickUp) int { return int(a.delay() - b.delay()) })
		if slowest.delay() > limit {
			return fmt.Errorf("a task of queue %s, whose master was not killed, waited for %v", queue, slowest.delay())
		}
	}
	return nil
}
