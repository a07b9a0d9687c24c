package servers

import (
	"errors"
	"strings"
	"sync"

	"github.com/dispatchkit/dispatch/bench/chaos/faultproxy"
	"github.com/dispatchkit/dispatch/internal/redistest"
)

// Config says how the servers run. The zero value writes nothing to disk.
type Config struct {
	// AOF turns the append-only file on, so that data survives Kill followed by Restart. Without it a primary that comes
	// back is empty, and so is its replica a moment later.
	AOF bool

	// LogDir is where each server writes what it says, into redis-PORT.log; empty is nowhere that stays.
	LogDir string

	// Args are appended to the command line of each server and win over what is set there.
	Args []string
}

// Set is the servers of one run. Its methods may be called from several goroutines, but two calls that change who is
// primary or where a slot lives must not overlap. The caller owns it and must Close it.
type Set struct {
	// Nodes are in the order in which they were started: primary and replica, or three masters and their replicas. Who is
	// what changes with failovers: ask Primary, Replica, MasterOf or ReplicaOf.
	Nodes []*Node

	cluster bool
	front   *faultproxy.Proxy // outside a cluster: the one that stands in front of the primary

	mu      sync.Mutex
	primary *Node // outside a cluster
}

// Single starts one server.
func Single(cfg Config) (*Set, error) { return start(cfg, 1) }

// Replicated starts a primary and one replica that has caught up with it.
func Replicated(cfg Config) (*Set, error) {
	s, err := start(cfg, 2)
	if err != nil {
		return nil, err
	}
	if err := s.follow(s.Nodes[1]); err != nil {
		s.Close()
		return nil, err
	}
	return s.orClose(s.waitStarted())
}

// Cluster starts three masters, each with one replica that has caught up with it.
func Cluster(cfg Config) (*Set, error) {
	s := &Set{cluster: true}
	var members []*redistest.Server
	for range 6 {
		n, err := startNode(cfg, true)
		if err != nil {
			s.Close()
			return nil, err
		}
		s.Nodes = append(s.Nodes, n)
		members = append(members, n.server)
	}
	if err := redistest.FormCluster(members, 1); err != nil {
		s.Close()
		return nil, err
	}
	return s.orClose(s.waitStarted())
}

// start starts n servers that know nothing of each other. The first is the primary.
func start(cfg Config, n int) (*Set, error) {
	s := &Set{}
	for range n {
		node, err := startNode(cfg, false)
		if err != nil {
			s.Close()
			return nil, err
		}
		node.returned = s.returned
		s.Nodes = append(s.Nodes, node)
	}
	s.primary, s.front = s.Nodes[0], s.Nodes[0].proxy
	return s, nil
}

func (s *Set) orClose(err error) (*Set, error) {
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// URL is the address for clients in the form that redisstore.Open takes. It leads through the proxies and never
// changes: of a Replicated set it is always the primary's.
func (s *Set) URL() string {
	if s.cluster {
		return s.url((*Node).Addr)
	}
	return s.front.URL()
}

// DirectURL goes round the proxies, to the primary of the moment. In a cluster only the first contact is direct:
// the nodes name the proxies to everybody.
func (s *Set) DirectURL() string {
	if s.cluster {
		return s.url((*Node).Direct)
	}
	return "redis://" + s.Primary().Direct() + "/0"
}

// url lists all nodes of a cluster.
func (s *Set) url(addr func(*Node) string) string {
	var addrs []string
	for _, n := range s.Nodes {
		addrs = append(addrs, addr(n))
	}
	return "redis://" + strings.Join(addrs, ",")
}

// Close ends servers and proxies and removes their files.
func (s *Set) Close() {
	for _, n := range s.Nodes {
		n.close()
	}
}

// running are the nodes that can be asked.
func (s *Set) running() []*Node {
	var nodes []*Node
	for _, n := range s.Nodes {
		if n.running() {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// at is the node with that address of a proxy.
func (s *Set) at(addr string) (*Node, error) {
	for _, n := range s.Nodes {
		if n.Addr() == addr {
			return n, nil
		}
	}
	return nil, errors.New("servers: no node at " + addr)
}
