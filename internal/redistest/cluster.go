package redistest

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"time"
)

const (
	slots        = 16384
	clusterLimit = 20 * time.Second // a cluster is ready after about 2 s on an idle machine
)

// FormCluster makes members one cluster and waits until each of them agrees. The first of them become masters, the
// others replicas of these, replicas of each: six members with one replica are three masters and three replicas.
func FormCluster(members []*Server, replicas int) error {
	var addrs []string
	for _, m := range members {
		addrs = append(addrs, m.Addrs...)
	}
	return formCluster(addrs, replicas)
}

// formCluster gives the masters among the nodes all slots and waits until each node agrees.
func formCluster(addrs []string, replicas int) error {
	var err error
	if len(addrs) == 1 {
		_, err = command(addrs[0], "CLUSTER", "ADDSLOTSRANGE", "0", strconv.Itoa(slots-1))
	} else {
		err = createCluster(addrs, replicas)
	}
	if err != nil {
		return err
	}
	return awaitCluster(addrs, len(addrs)/(1+replicas))
}

// createCluster lets redis-cli introduce the nodes to each other. By hand it takes as long and fifty more lines.
func createCluster(addrs []string, replicas int) error {
	args := append([]string{"--cluster", "create"}, addrs...)
	cmd := exec.Command("redis-cli", append(args, "--cluster-replicas", strconv.Itoa(replicas), "--cluster-yes")...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	c, err := spawn(cmd)
	if err != nil {
		return fmt.Errorf("redistest: cannot start redis-cli: %w", err)
	}
	if !c.wait(clusterLimit) {
		c.kill()
		return fmt.Errorf("redistest: cluster is not made after %v\n%s", clusterLimit, out.String())
	}
	if c.err != nil {
		return fmt.Errorf("redistest: redis-cli --cluster create: %w\n%s", c.err, out.String())
	}
	return nil
}

// awaitCluster returns when every node serves all slots and knows every other node. One node that is ready is not
// enough: a client may ask any of them for the slot table, and a late one would answer with holes.
func awaitCluster(addrs []string, masters int) error {
	for deadline := time.Now().Add(clusterLimit); ; time.Sleep(pollEvery) {
		var late []error
		for _, addr := range addrs {
			if err := clusterReady(addr, len(addrs), masters); err != nil {
				late = append(late, err)
			}
		}
		if late == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("redistest: cluster is not ready after %v: %w", clusterLimit, errors.Join(late...))
		}
	}
}

// clusterReady asks one node for its view of the cluster.
func clusterReady(addr string, nodes, masters int) error {
	info, err := command(addr, "CLUSTER", "INFO")
	if err != nil {
		return err
	}
	want := map[string]string{
		"cluster_state":       "ok",
		"cluster_slots_ok":    strconv.Itoa(slots),
		"cluster_known_nodes": strconv.Itoa(nodes),
		"cluster_size":        strconv.Itoa(masters),
	}
	for name, value := range want {
		if got := infoField(info, name); got != value {
			return fmt.Errorf("%s: %s is %q, not %q", addr, name, got, value)
		}
	}
	return nil
}
