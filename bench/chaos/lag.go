package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dispatchkit/dispatch/bench/chaos/audit"
	"github.com/dispatchkit/dispatch/bench/chaos/servers"
)

// lag is a failover to a replica that is behind.
type lag struct {
	paused   time.Time // what is acknowledged from here on the replica may not have
	deaf     time.Time // what is asked for from here on the replica does not have
	killed   time.Time // the primary
	promoted time.Time // the replica
	kept     *audit.Snap
}

// failOverBehind pauses the replica for a while, kills the primary, and has the replica take its place with what it has, as late as
// somebody needs to find out.
// What is on its way to the replica when the primary dies, it reads when it goes on. So the way is filled up first.
func (r *Run) failOverBehind(ctx context.Context, behind time.Duration) (*lag, error) {
	down := time.Duration(500+r.Rand.IntN(500)) * time.Millisecond
	primary, replica := r.Set.Primary(), r.Set.Replica()
	l := &lag{paused: time.Now()}
	r.Fault("lag", replica.Addr())
	if err := replica.Pause(); err != nil {
		return nil, err
	}
	if err := fillTheWay(ctx, primary); err != nil {
		return nil, err
	}
	l.deaf = time.Now()
	if !Sleep(ctx, behind) {
		return nil, context.Cause(ctx)
	}
	l.killed = time.Now()
	r.Fault("kill", primary.Addr())
	primary.Kill()
	if !Sleep(ctx, down) {
		return nil, context.Cause(ctx)
	}
	if err := replica.Resume(); err != nil {
		return nil, err
	}
	err := Until(ctx, 10*time.Second, "the replica has read what was on its way", func() (bool, error) {
		info, err := replica.Command("INFO", "replication")
		return strings.Contains(info, "master_link_status:down"), err
	})
	if err != nil {
		return nil, err
	}
	if _, err := replica.Command("REPLICAOF", "NO", "ONE"); err != nil {
		return nil, fmt.Errorf("REPLICAOF: %w", err)
	}
	if l.kept, err = snapshotOf(ctx, replica); err != nil { // before anybody comes
		return nil, err
	}
	l.promoted = time.Now()
	r.Fault("promote", replica.Addr())
	return l, r.Set.Promote(replica)
}

// fillTheWay has a primary send its replica more than the buffers of their connection hold.
func fillTheWay(ctx context.Context, primary *servers.Node) error {
	raw := redis.NewClient(&redis.Options{Addr: primary.Direct()})
	defer raw.Close()
	const megabytes = 24 // two to three times what Linux has for a connection
	for range megabytes {
		if err := raw.Set(ctx, "filler", make([]byte, 1<<20), time.Minute).Err(); err != nil {
			return fmt.Errorf("filling the way to the replica: %w", err)
		}
	}
	return nil
}

func snapshotOf(ctx context.Context, n *servers.Node) (*audit.Snap, error) {
	raw := redis.NewClient(&redis.Options{Addr: n.Direct()})
	defer raw.Close()
	return audit.Snapshot(ctx, raw, prefix)
}

// forgotten is what a failover has undone.
type forgotten struct {
	tasks    int // that were acknowledged, had not ended, and are gone
	ends     int // of tasks that wait or are leased again
	attempts int // that were made of tasks that wait or are leased, or that a call which is still under way may store anew
}

// forgot compares the ledger with what the new primary had. That it has forgotten nothing is an error.
func (r *Run) forgot(l *lag) (f forgotten, err error) {
	h, err := audit.Read(r.ledgerDir())
	if err != nil {
		return f, err
	}
	ended, known := map[audit.TaskKey]bool{}, map[audit.TaskKey]bool{}
	for i := range h.Events {
		if e := &h.Events[i]; e.Kind == audit.KindAck && e.At < l.promoted.UnixMicro() {
			known[e.Task()] = true
		}
	}
	for i := range h.Events {
		e := &h.Events[i]
		final := l.kept.Finals[e.Task()]
		live := final.State == audit.StateDue || final.State == audit.StateLeased
		switch {
		case e.At > l.promoted.UnixMicro():
		case e.Kind == audit.KindStart && (live || !known[e.Task()]):
			f.attempts++
		case e.Kind == audit.KindOutcome && (e.Outcome == audit.OutcomeSucceeded || e.Outcome == audit.OutcomeDead):
			ended[e.Task()] = true
			if live {
				f.ends++
			}
		}
	}
	for i := range h.Events {
		e := &h.Events[i]
		_, there := l.kept.Finals[e.Task()]
		if e.Kind == audit.KindAck && e.Result == audit.AckStored && e.At <= l.promoted.UnixMicro() && !there && !ended[e.Task()] {
			f.tasks++
		}
	}
	r.Note("the new primary has forgotten %+v", f)
	if f.ends == 0 {
		return f, errNotBehind
	}
	return f, nil
}

var errNotBehind = errors.New("the replica was not behind, so that nothing is shown")

// revivePrimary starts the killed primary again, as a replica, and waits until it is in step and the new primary counts it: it
// does so when the replica confirms for the first time, up to a second later.
func (r *Run) revivePrimary(ctx context.Context, n *servers.Node) error {
	if err := n.Restart(); err != nil {
		return err
	}
	if err := r.Set.WaitReady(ctx); err != nil {
		return err
	}
	return Until(ctx, 10*time.Second, "the primary counts its replica", func() (bool, error) {
		count, err := r.Set.Primary().Command("WAIT", "1", "100")
		return count == "1", err
	})
}
