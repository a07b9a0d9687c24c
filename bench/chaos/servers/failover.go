package servers

import "context"

// Primary is the primary of a Single or Replicated set.
func (s *Set) Primary() *Node { panic("not yet") }

// Replica is the replica of a Replicated set, nil of others.
func (s *Set) Replica() *Node { panic("not yet") }

// Promote makes the replica of a Replicated set its primary, as Sentinel does after a failure: at once, without waiting
// for what the replica has not got yet. The address in URL goes to it, and connections to the old primary are cut. The
// old primary becomes the replica and loses what it has more; one that is down or paused learns that when
// it comes back by Restart or Resume.
func (s *Set) Promote(replica *Node) error { panic("not yet") }

// Failover says how a replica of a cluster takes over.
type Failover string

// The kinds of failover of CLUSTER FAILOVER.
const (
	Graceful Failover = ""         // agreed with the master, nothing is lost
	Force    Failover = "FORCE"    // the master is not asked, the other masters vote
	Takeover Failover = "TAKEOVER" // nobody is asked
)

// FailOver makes a replica of a cluster the master of its slots, and returns when it is.
func (s *Set) FailOver(ctx context.Context, replica *Node, how Failover) error { panic("not yet") }
