package main

import (
	"context"
	"time"

	"github.com/dispatchkit/dispatch/bench/chaos/audit"
)

// Topology is what kind of Redis a scenario runs on.
type Topology string

// The topologies; see package servers for how they are made.
const (
	// Single is one server without persistence, unless Scenario.AOF says otherwise.
	Single Topology = "single"
	// Replicated is a primary with one asynchronous replica.
	Replicated Topology = "replicated"
	// Cluster is three masters with a replica each.
	Cluster Topology = "cluster"
)

// Scenario is one thing that goes wrong, and what must hold all the same. To write one, add a file scenario_<name>.go with a
// function that returns it, and name the function in catalogue.
type Scenario struct {
	// Name is in kebab-case, such as "stale-owner-finishes-late". With the seed it decides what Run.Rand yields.
	Name string
	// Doc is one sentence: what is done and what must hold.
	Doc string
	// Servers is what it runs on; empty means Single.
	Servers Topology
	// AOF turns the append-only file of the servers on, for scenarios that kill them and want their data back.
	AOF bool
	// Args are further arguments of each server.
	Args []string
	// Bound is what it may cost. Losses, forgeries and early starts have no bound: they are 0, but for Bound.MayLose.
	Bound Bound
	// Run does it, and returns when everything that was acknowledged should have come to an end, usually by Run.Drain. An
	// error is a failure with that text. ctx ends when the run has taken far too long. Processes, proxies and servers that
	// it got from r need not be closed. It is called on one goroutine; what it starts itself it waits for.
	Run func(ctx context.Context, r *Run) error
}

// Bound is what a scenario may cost. The functions are called when Scenario.Run has returned. The zero value allows nothing.
type Bound struct {
	// Recovery is the longest time from the end of a fault (Run.Recovered) until service is normal; 0 when it is not measured.
	Recovery time.Duration
	// Duplicates is how many attempts may start beyond one per task and one for each outcome that asked for another (retry,
	// released): those whose lease was lost, for example. Nil means 0, below 0 is any number.
	Duplicates func(r *Run) int
	// Unexplained is how many of these may have nobody who tells why, as when the worker is killed that has just given the tasks of
	// another killed one away; nil means 0.
	Unexplained func(r *Run) int
	// Overlaps is how many attempts may overlap beside those that faults in the ledger explain.
	Overlaps func(r *Run) int
	// MayLose says of an acknowledged task that its loss is inside a documented window; nil means that none may be lost. What is lost
	// so is not among Row.Lost, but is counted as Row.Forgotten.
	MayLose func(r *Run, ack audit.Event) bool
	// Leftover are patterns, as of path.Match, of keys that may remain besides those that every run leaves.
	Leftover []string
}

// anyNumber is no bound.
func anyNumber(*Run) int { return -1 }

// catalogue is every scenario, in the order in which they run.
func catalogue() []Scenario {
	return []Scenario{
		killNine(),
		rollingDeploy(),
		replyLost(),
		errorStorm(),
		scriptFlush(),
		redisRestart(),
		aofKill(),
		fullStore(),
		clusterReshard(),
		clusterFailover(),
		masterKill(),
		failoverLoss(),
		staleOwner(),
		frozenWorker(),
		endlessReceiver(),
		sweeperRace(),
		twoLeaders(),
		cronHandover(),
		clockSkew(),
		dedupCrash(),
		idleBlackHole(),
		wakeLost(),
		limitsChurn(),
		leaseHistory(),
		delayedAndThrottled(),
		bigBacklogAdmin(),
		hostileInput(),
		failoverWait(),
		randomMix(),
	}
}
