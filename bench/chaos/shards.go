package main

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dispatchkit/dispatch/bench/chaos/servers"
)

// fullCoverage keeps a cluster serving the slots that it has when a master is gone.
var fullCoverage = []string{"--cluster-require-full-coverage", "no"}

// split parts queues into those whose keys a node has, and the others.
func (r *Run) split(node *servers.Node, queues []string) (on, off []string, err error) {
	for _, q := range queues {
		master, err := r.Set.MasterOf(key(q, "due"))
		if err != nil {
			return nil, nil, err
		}
		if master == node {
			on = append(on, q)
		} else {
			off = append(off, q)
		}
	}
	return on, off, nil
}

// otherMaster is a random master that is not a given one.
func (r *Run) otherMaster(than *servers.Node) (*servers.Node, error) {
	masters, err := r.Set.Masters()
	if err != nil {
		return nil, err
	}
	for _, i := range r.Rand.Perm(len(masters)) {
		if masters[i] != than {
			return masters[i], nil
		}
	}
	return nil, fmt.Errorf("there are %d masters", len(masters))
}

// reshardSlowly moves a slot as redis-cli does, but pauses before its first keys, until it has lasted for a while. So at first a
// queue has all its keys on a master that asks before every command of a script whether it still has the key, and then some on
// either master, when scripts are told TRYAGAIN.
func (r *Run) reshardSlowly(ctx context.Context, slot int, from, to *servers.Node, lasts time.Duration) error {
	number := strconv.Itoa(slot)
	host, port, _ := strings.Cut(to.Direct(), ":")
	ids := map[*servers.Node]string{}
	for _, n := range []*servers.Node{from, to} {
		id, err := n.Command("CLUSTER", "MYID")
		if err != nil {
			return err
		}
		ids[n] = id
	}
	if err := slotCommand(to, "CLUSTER", "SETSLOT", number, "IMPORTING", ids[from]); err != nil {
		return err
	}
	if err := slotCommand(from, "CLUSTER", "SETSLOT", number, "MIGRATING", ids[to]); err != nil {
		return err
	}
	const pauses = 6
	for begun := time.Now(); ; {
		if time.Since(begun) < lasts && !Sleep(ctx, lasts/pauses) {
			return context.Cause(ctx)
		}
		name, err := from.Command("CLUSTER", "GETKEYSINSLOT", number, "1")
		if err != nil {
			return err
		}
		if name == "" {
			break
		}
		if err := slotCommand(from, "MIGRATE", host, port, name, "0", "5000"); err != nil {
			return err
		}
	}
	masters, err := r.Set.Masters()
	if err != nil {
		return err
	}
	for _, n := range append([]*servers.Node{to, from}, masters...) { // first the two, so that nobody owns it twice
		if err := slotCommand(n, "CLUSTER", "SETSLOT", number, "NODE", ids[to]); err != nil {
			return err
		}
	}
	return nil
}

func slotCommand(n *servers.Node, args ...string) error {
	if reply, err := n.Command(args...); err != nil {
		return fmt.Errorf("%v on %s: %s: %w", args, n.Direct(), cmp.Or(reply, "no reply"), err)
	}
	return nil
}
