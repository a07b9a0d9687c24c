package redistest

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

// replicaLimit is how long a replica may take to be in step: 0.2 s on an idle machine, in a cluster a second more.
const replicaLimit = 20 * time.Second

// LaunchReplica starts a replica of the first node, in its cluster if it is in one, and returns when the node counts it as
// in step, so that WAIT 1 is answered by 1. The caller must Stop it. Kill and Pause act on it alone; it does not become
// the primary by itself, except in a cluster whose other masters want it to.
func (s *Server) LaunchReplica() (*Server, error) {
	primary := s.nodes[0]
	if _, err := command(primary.addr, "CONFIG", "SET", "repl-diskless-sync-delay", "0"); err != nil {
		return nil, err
	}
	info, err := command(primary.addr, "INFO", "cluster")
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(primary.addr)
	if err != nil {
		return nil, err
	}
	cfg := Config{Args: []string{"--replicaof", host, port}}
	clustered := infoField(info, "cluster_enabled") == "1"
	if clustered {
		cfg = Config{Masters: 1}
	}
	n, err := newNode(cfg)
	if err != nil {
		return nil, err
	}
	replica := &Server{Addrs: []string{n.addr}, nodes: []*node{n}}
	if clustered {
		err = joinCluster(n, primary)
	}
	if err == nil {
		err = awaitReplica(n, primary)
	}
	if err != nil {
		replica.Stop()
		return nil, err
	}
	return replica, nil
}

// StartReplica gives the test a replica of the first node of a server of its own.
func StartReplica(t testing.TB, of *Server) *Server {
	t.Helper()
	replica, err := of.LaunchReplica()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(replica.Stop)
	return replica
}

// joinCluster makes a node meet a master and follow it.
func joinCluster(n, master *node) error {
	host, port, err := net.SplitHostPort(master.addr)
	if err != nil {
		return err
	}
	id, err := command(master.addr, "CLUSTER", "MYID")
	if err != nil {
		return err
	}
	bus := ""
	for i, arg := range master.args {
		if arg == "--cluster-port" {
			bus = master.args[i+1]
		}
	}
	if _, err := command(n.addr, "CLUSTER", "MEET", host, port, bus); err != nil {
		return err
	}
	err = poll(replicaLimit, func() error { // until the two have shaken hands
		_, err := command(n.addr, "CLUSTER", "REPLICATE", id)
		return err
	})
	if err != nil {
		return err
	}
	return poll(replicaLimit, func() error {
		info, err := command(n.addr, "CLUSTER", "INFO")
		if state := infoField(info, "cluster_state"); err == nil && state != "ok" {
			err = fmt.Errorf("%s: cluster_state is %s", n.addr, state)
		}
		return err
	})
}

// awaitReplica returns when the primary counts the replica, which has loaded what it sent and says so.
func awaitReplica(n, primary *node) error {
	_, port, err := net.SplitHostPort(n.addr)
	if err != nil {
		return err
	}
	return poll(replicaLimit, func() error {
		info, err := command(primary.addr, "INFO", "replication")
		if err != nil {
			return err
		}
		offset := infoField(info, "master_repl_offset")
		for line := range strings.Lines(info) {
			if strings.HasPrefix(line, "slave") && strings.Contains(line, "port="+port+",state=online,offset="+offset+",") {
				return nil
			}
		}
		return fmt.Errorf("replica %s is not in step:\n%s", n.addr, info)
	})
}

// poll asks until there is no error, or returns the last one.
func poll(limit time.Duration, ask func() error) error {
	for deadline := time.Now().Add(limit); ; time.Sleep(pollEvery) {
		err := ask()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("redistest: after %v: %w", limit, err)
		}
	}
}
