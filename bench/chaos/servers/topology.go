package servers

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const slots = 16384

// member is one line of CLUSTER NODES: what a node knows about itself or another one.
type member struct {
	id, addr string // the address that it announces
	flags    []string
	master   string // the ID of a replica's master, else "-"
	epoch    int64
	slots    []span
}

// span is a range of slots, both ends included.
type span struct{ from, to int }

func (m member) is(flag string) bool { return slices.Contains(m.flags, flag) }

func (m member) owns(slot int) bool {
	return slices.ContainsFunc(m.slots, func(s span) bool { return s.from <= slot && slot <= s.to })
}

// members is a node's view of its cluster.
func (n *Node) members() ([]member, error) {
	text, err := n.Command("CLUSTER", "NODES")
	if err != nil {
		return nil, err
	}
	var all []member
	for line := range strings.Lines(text) {
		m, err := parseMember(line)
		if err != nil {
			return nil, fmt.Errorf("servers: %s about its cluster: %w", n.Direct(), err)
		}
		all = append(all, m)
	}
	return all, nil
}

// parseMember reads "id ip:port@bus,host flags master ping pong epoch link slot slot-slot [slot->-id]".
func parseMember(line string) (member, error) {
	fields := strings.Fields(line)
	if len(fields) < 8 {
		return member{}, fmt.Errorf("%q is too short", line)
	}
	addr, _, _ := strings.Cut(fields[1], "@")
	epoch, err := strconv.ParseInt(fields[6], 10, 64)
	if err != nil {
		return member{}, fmt.Errorf("epoch of %q: %w", line, err)
	}
	m := member{id: fields[0], addr: addr, flags: strings.Split(fields[2], ","), master: fields[3], epoch: epoch}
	for _, field := range fields[8:] {
		if strings.HasPrefix(field, "[") {
			continue // on its way, and still this node's
		}
		from, to, ranged := strings.Cut(field, "-")
		if !ranged {
			to = from
		}
		var s span
		if s.from, err = strconv.Atoi(from); err == nil {
			s.to, err = strconv.Atoi(to)
		}
		if err != nil {
			return member{}, fmt.Errorf("slots of %q: %w", line, err)
		}
		m.slots = append(m.slots, s)
	}
	return m, nil
}

// itself is what a node says about itself.
func (n *Node) itself() (member, error) {
	all, err := n.members()
	if err != nil {
		return member{}, err
	}
	for _, m := range all {
		if m.is("myself") {
			return m, nil
		}
	}
	return member{}, fmt.Errorf("servers: %s does not know itself", n.Direct())
}

// Slot is the hash slot of a key in a cluster.
func (s *Set) Slot(key string) (int, error) {
	running := s.running()
	if len(running) == 0 {
		return 0, errNoneRuns
	}
	text, err := running[0].Command("CLUSTER", "KEYSLOT", key)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(text)
}

// MasterOf is the master of a key's slot in a cluster, and the primary in other sets.
func (s *Set) MasterOf(key string) (*Node, error) {
	if !s.cluster {
		return s.Primary(), nil
	}
	slot, err := s.Slot(key)
	if err != nil {
		return nil, err
	}
	return s.owner(slot)
}

// owner is the running node that claims a slot. Of several the one with the highest epoch is right, and the others
// will hear of it.
func (s *Set) owner(slot int) (*Node, error) {
	var (
		owner *Node
		epoch int64
	)
	for _, n := range s.running() {
		m, err := n.itself()
		if err != nil {
			return nil, err
		}
		if m.is("master") && m.owns(slot) && (owner == nil || m.epoch > epoch) {
			owner, epoch = n, m.epoch
		}
	}
	if owner == nil {
		return nil, fmt.Errorf("servers: slot %d has no master that runs", slot)
	}
	return owner, nil
}

// Masters are the running nodes that own slots, in the order of Nodes; outside a cluster, the primary.
func (s *Set) Masters() ([]*Node, error) {
	if !s.cluster {
		return []*Node{s.Primary()}, nil
	}
	var masters []*Node
	for _, n := range s.running() {
		m, err := n.itself()
		if err != nil {
			return nil, err
		}
		if m.is("master") && len(m.slots) > 0 {
			masters = append(masters, n)
		}
	}
	return masters, nil
}

// ReplicaOf is the replica of a master, both dead or alive, as far as the running nodes know.
func (s *Set) ReplicaOf(master *Node) (*Node, error) {
	if !s.cluster {
		if r := s.Replica(); r != nil && master == s.Primary() {
			return r, nil
		}
		return nil, fmt.Errorf("servers: %s has no replica", master.Direct())
	}
	for _, n := range s.running() {
		all, err := n.members()
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(all, func(m member) bool { return m.addr == master.Addr() })
		if i < 0 {
			continue
		}
		if j := slices.IndexFunc(all, func(m member) bool { return m.master == all[i].id }); j >= 0 {
			return s.at(all[j].addr)
		}
	}
	return nil, fmt.Errorf("servers: nobody knows a replica of %s", master.Direct())
}
