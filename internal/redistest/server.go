package redistest

import (
	"errors"
	"fmt"
	"syscall"
)

// Config says what Launch starts. The zero value is one plain server that writes nothing to disk.
type Config struct {
	// AOF turns the append-only file on, so that data survives Kill followed by Restart.
	AOF bool

	// LogDir is where each server writes what it says, into redis-PORT.log; empty is a directory that goes with the server.
	LogDir string

	// Args are appended to the command line of each server and win over what is set there.
	Args []string

	// Masters is the number of cluster nodes, each a master without replica. 0 is one server outside cluster mode, 1 a
	// cluster of one node that owns all slots, 3 and more a real cluster. Redis cannot create a cluster of two.
	Masters int

	// Member starts one server in cluster mode that owns no slot and knows no other node, for callers that give each
	// node arguments of its own and then call FormCluster. Masters must be 0.
	Member bool
}

// Server is one Redis server, or the masters of one cluster. Its methods act on all of its nodes and may be called from
// several goroutines; calls that contradict each other, such as Kill during Restart, take effect one after the other.
type Server struct {
	// Addrs are the addresses of the nodes as host:port. They stay the same when a node restarts.
	Addrs []string

	nodes   []*node
	cluster bool // all nodes of a cluster are here, so that it can be waited for
}

// Launch starts what cfg says and returns when it serves. The caller owns the server and must Stop it.
func Launch(cfg Config) (*Server, error) {
	if cfg.Masters == 2 || cfg.Masters < 0 {
		return nil, fmt.Errorf("redistest: Masters is %d: must be 0, 1, or at least 3", cfg.Masters)
	}
	if cfg.Member && cfg.Masters != 0 {
		return nil, fmt.Errorf("redistest: Member with Masters %d", cfg.Masters)
	}
	if err := onPath("redis-server"); err != nil {
		return nil, err
	}
	s := &Server{cluster: cfg.Masters > 0}
	for range max(1, cfg.Masters) {
		n, err := newNode(cfg)
		if err != nil {
			s.Stop()
			return nil, err
		}
		s.nodes = append(s.nodes, n)
		s.Addrs = append(s.Addrs, n.addr)
	}
	if s.cluster {
		if err := formCluster(s.Addrs, 0); err != nil {
			s.Stop()
			return nil, err
		}
	}
	return s, nil
}

// Addr is the address of the first node.
func (s *Server) Addr() string { return s.Addrs[0] }

// URL is the address of the first node in the form that go-redis parses.
func (s *Server) URL() string { return "redis://" + s.Addr() + "/0" }

// Node is the i-th node alone: what it does to the view, such as Kill, it does to that node. Restart of a view waits
// until the node serves, not until the cluster has taken it back.
func (s *Server) Node(i int) *Server {
	return &Server{Addrs: s.Addrs[i : i+1], nodes: s.nodes[i : i+1]}
}

// PIDs are the process IDs of the nodes, in the order of Addrs. Restart changes them.
func (s *Server) PIDs() []int {
	pids := make([]int, len(s.nodes))
	for i, n := range s.nodes {
		pids[i] = n.pid()
	}
	return pids
}

// Command sends one command to the first node over a connection of its own, and returns the reply as text: a nil reply
// is empty, the elements of an array are joined by newlines. It is meant for administration (CONFIG SET, SCRIPT FLUSH,
// INFO commandstats), follows no redirection, and gives up after five seconds.
func (s *Server) Command(args ...string) (string, error) {
	return command(s.Addr(), args...)
}

// Stop ends the servers and removes their files. It may be called more than once.
func (s *Server) Stop() {
	for _, n := range s.nodes {
		n.stop()
	}
}

// Kill ends the servers with SIGKILL, as a crash does. Files stay, and Restart finds them.
func (s *Server) Kill() {
	for _, n := range s.nodes {
		n.kill()
	}
}

// Pause stops the servers with SIGSTOP: connections stay open, and nothing is answered. To a client that is a hang or a
// network that drops packets.
func (s *Server) Pause() error { return s.signal(syscall.SIGSTOP) }

// Resume undoes Pause.
func (s *Server) Resume() error { return s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) error {
	var failed []error
	for _, n := range s.nodes {
		failed = append(failed, n.signal(sig))
	}
	return errors.Join(failed...)
}

// Restart starts the servers again on the same ports, after an orderly end of those that still run, and returns when
// they serve. Data is gone unless Config.AOF is set; a cluster remembers its slots either way.
func (s *Server) Restart() error {
	for _, n := range s.nodes {
		n.terminate()
	}
	for _, n := range s.nodes {
		if err := n.start(); err != nil {
			return err
		}
	}
	if s.cluster {
		return awaitCluster(s.Addrs, len(s.Addrs))
	}
	return nil
}
