package servers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Primary is the primary of a Single or Replicated set, nil of a cluster.
func (s *Set) Primary() *Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.primary
}

// Replica is the replica of a Replicated set, nil of others.
func (s *Set) Replica() *Node {
	primary := s.Primary()
	if primary == nil || len(s.Nodes) == 1 {
		return nil
	}
	if s.Nodes[0] == primary {
		return s.Nodes[1]
	}
	return s.Nodes[0]
}

// Promote makes the replica of a Replicated set its primary, as Sentinel does after a failure: at once, without waiting
// for what the replica has not got yet. The address in URL goes to it, and connections to the old primary are cut. The
// old primary becomes the replica and loses what it has more; one that is down or paused learns that when
// it comes back by Restart or Resume.
//
// The two nodes exchange their proxies, and a fault of a proxy stays where it is: a slow way to the primary remains one.
func (s *Set) Promote(replica *Node) error {
	old := s.Primary()
	if replica == nil || replica != s.Replica() {
		return errors.New("servers: only the replica of a Replicated set can be promoted")
	}
	if _, err := replica.Command("REPLICAOF", "NO", "ONE"); err != nil {
		return fmt.Errorf("servers: promote %s: %w", replica.Direct(), err)
	}
	behind := replica.Proxy()
	replica.stand(s.front)
	old.stand(behind)
	s.mu.Lock()
	s.primary = replica
	s.mu.Unlock()
	if !old.running() {
		return nil
	}
	return s.follow(old)
}

// returned gives a node that was away its place.
func (s *Set) returned(n *Node) error {
	if n == s.Primary() {
		return nil
	}
	return s.follow(n)
}

// follow makes a node the replica of the primary, past the proxy.
func (s *Set) follow(n *Node) error {
	host, port := split(s.Primary().Direct())
	if _, err := n.Command("REPLICAOF", host, port); err != nil {
		return fmt.Errorf("servers: %s cannot follow %s: %w", n.Direct(), s.Primary().Direct(), err)
	}
	return nil
}

// Failover says how a replica of a cluster takes over.
type Failover string

// The kinds of failover of CLUSTER FAILOVER.
const (
	Graceful Failover = ""         // agreed with the master, nothing is lost
	Force    Failover = "FORCE"    // the master is not asked, the other masters vote
	Takeover Failover = "TAKEOVER" // nobody is asked
)

// FailOver makes a replica of a cluster the master of its slots, and returns when it says that it is. The other nodes hear of
// it a moment later: see WaitReady. A graceful failover that the master does not answer comes to nothing, and ctx ends.
func (s *Set) FailOver(ctx context.Context, replica *Node, how Failover) error {
	args := slices.DeleteFunc([]string{"CLUSTER", "FAILOVER", string(how)}, func(arg string) bool { return arg == "" })
	if _, err := replica.Command(args...); err != nil {
		return fmt.Errorf("servers: fail over to %s: %w", replica.Direct(), err)
	}
	return await(ctx, func() error {
		role, err := replica.Command("ROLE")
		if err == nil && !strings.HasPrefix(role, "master") {
			err = fmt.Errorf("servers: %s is not master yet", replica.Direct())
		}
		return err
	})
}
