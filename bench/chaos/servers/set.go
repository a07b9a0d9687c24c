package servers

import "context"

// Config says how the servers run. The zero value writes nothing to disk.
type Config struct {
	// AOF turns the append-only file on, so that data survives Kill followed by Restart. Without it a primary that comes
	// back is empty, and so is its replica a moment later.
	AOF bool

	// Args are appended to the command line of each server and win over what is set there.
	Args []string
}

// Set is the servers of one run. Its methods may be called from several goroutines, but two calls that change who is
// primary or where a slot lives must not overlap. The caller owns it and must Close it.
type Set struct {
	// Nodes are in the order in which they were started: primary and replica, or three masters and their replicas. Who is
	// what changes with failovers: ask Primary, Replica, MasterOf or ReplicaOf.
	Nodes []*Node
}

// Single starts one server.
func Single(cfg Config) (*Set, error) { panic("not yet") }

// Replicated starts a primary and one replica that has caught up with it.
func Replicated(cfg Config) (*Set, error) { panic("not yet") }

// Cluster starts three masters, each with one replica that has caught up with it.
func Cluster(cfg Config) (*Set, error) { panic("not yet") }

// URL is the address for clients in the form that redisstore.Open takes. It leads through the proxies and never
// changes: of a Replicated set it is always the primary's.
func (s *Set) URL() string { panic("not yet") }

// DirectURL goes round the proxies, to the primary of the moment. In a cluster only the first contact is direct:
// the nodes name the proxies to everybody.
func (s *Set) DirectURL() string { panic("not yet") }

// Close ends servers and proxies and removes their files.
func (s *Set) Close() { panic("not yet") }

// WaitReady returns when every node that has been neither killed nor paused serves, every slot has such a master, and
// every replica has what its master had when it was asked. It returns the cause that is left when ctx ends first.
func (s *Set) WaitReady(ctx context.Context) error { panic("not yet") }
