package servers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	pollEvery  = 10 * time.Millisecond
	startLimit = 20 * time.Second // a cluster is ready after about 3 s on an idle machine
)

var errNoneRuns = errors.New("servers: no node runs")

// WaitReady returns when every node that has been neither killed nor paused serves, every slot of a cluster has a
// master among these on which they agree, and every replica has what its master had when it was asked. After the kill
// of a master it thus waits for the failover. When ctx ends first, it returns what was missing.
func (s *Set) WaitReady(ctx context.Context) error {
	return await(ctx, s.ready)
}

// waitStarted is WaitReady for a set that nobody has seen yet.
func (s *Set) waitStarted() error {
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	return s.WaitReady(ctx)
}

// await asks again until nothing is missing.
func await(ctx context.Context, missing func() error) error {
	for {
		err := missing()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(pollEvery):
		}
	}
}

// ready says what is missing.
func (s *Set) ready() error {
	running := s.running()
	if len(running) == 0 {
		return errNoneRuns
	}
	if s.cluster {
		return s.clusterReady(running)
	}
	primary := s.Primary()
	if !primary.running() {
		return fmt.Errorf("servers: the primary %s does not run", primary.Direct())
	}
	for _, n := range running {
		if n == primary {
			if _, err := n.Command("PING"); err != nil {
				return err
			}
		} else if err := caughtUp(n, primary); err != nil {
			return err
		}
	}
	return nil
}

// clusterReady compares what the running nodes say.
func (s *Set) clusterReady(running []*Node) error {
	var agreed string
	for _, n := range running {
		if err := n.healthy(); err != nil {
			return err
		}
		all, err := n.members()
		if err != nil {
			return err
		}
		table, err := s.slotTable(all)
		if err != nil {
			return fmt.Errorf("%s says: %w", n.Direct(), err)
		}
		if agreed == "" {
			agreed = table
		}
		if table != agreed {
			return fmt.Errorf("servers: %s says that the slots are at %s, another node %s", n.Direct(), table, agreed)
		}
		if err := s.followsItsMaster(n, all); err != nil {
			return err
		}
	}
	return nil
}

// healthy says whether a node of a cluster serves, and believes that all slots are served.
func (n *Node) healthy() error {
	info, err := n.Command("CLUSTER", "INFO")
	if err != nil {
		return err
	}
	if state, ok := field(info, "cluster_state"), field(info, "cluster_slots_ok"); state != "ok" || ok != strconv.Itoa(slots) {
		return fmt.Errorf("servers: %s says that the cluster's state is %s with %s slots", n.Direct(), state, ok)
	}
	return nil
}

// slotTable is who owns which slots, in a form that can be compared. All must have owners, and these must run.
func (s *Set) slotTable(all []member) (string, error) {
	var (
		lines []string
		owned int
	)
	for _, m := range all {
		if len(m.slots) == 0 {
			continue
		}
		owner, err := s.at(m.addr)
		if err != nil {
			return "", err
		}
		if !owner.running() {
			return "", fmt.Errorf("servers: slots %v are at %s, which does not run", m.slots, owner.Direct())
		}
		for _, span := range m.slots {
			owned += span.to - span.from + 1
		}
		lines = append(lines, fmt.Sprint(owner.Direct(), m.slots))
	}
	if owned != slots {
		return "", fmt.Errorf("servers: %d slots have an owner", owned)
	}
	slices.Sort(lines)
	return strings.Join(lines, " "), nil
}

// followsItsMaster checks a node of a cluster if it is a replica.
func (s *Set) followsItsMaster(n *Node, all []member) error {
	i := slices.IndexFunc(all, func(m member) bool { return m.is("myself") && m.is("slave") })
	if i < 0 {
		return nil
	}
	j := slices.IndexFunc(all, func(m member) bool { return m.id == all[i].master })
	if j < 0 {
		return fmt.Errorf("servers: %s does not know its master", n.Direct())
	}
	master, err := s.at(all[j].addr)
	if err != nil {
		return err
	}
	return caughtUp(n, master)
}

// caughtUp says whether a replica has what its master has now.
func caughtUp(replica, master *Node) error {
	ahead, err := master.Command("INFO", "replication")
	if err != nil {
		return err
	}
	behind, err := replica.Command("INFO", "replication")
	if err != nil {
		return err
	}
	want, _ := strconv.ParseInt(field(ahead, "master_repl_offset"), 10, 64)
	got, _ := strconv.ParseInt(field(behind, "slave_repl_offset"), 10, 64)
	if link := field(behind, "master_link_status"); link != "up" || got < want {
		return fmt.Errorf("servers: the link of %s to its master is %q, at %d of %d bytes", replica.Direct(), link, got, want)
	}
	return nil
}

// field finds name in the lines "name:value" of INFO and CLUSTER INFO.
func field(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
