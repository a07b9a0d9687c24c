package servers

import (
	"fmt"
	"strconv"
	"strings"
)

const (
	migrateKeys    = 100    // with one MIGRATE, during which the source serves nobody
	migrateTimeout = "3000" // ms
)

// MigrateSlot moves a slot with everything in it from one master to another while clients use it, as a reshard by
// redis-cli does. Clients that ask for a key that is on its way are told ASK or TRYAGAIN. A move that an error ended stays
// open: call it again to finish. Names of keys must not contain line ends.
func (s *Set) MigrateSlot(slot int, from, to *Node) error {
	source, err := from.itself()
	if err != nil {
		return err
	}
	target, err := to.itself()
	if err != nil {
		return err
	}
	n := strconv.Itoa(slot)
	if _, err := to.Command("CLUSTER", "SETSLOT", n, "IMPORTING", source.id); err != nil {
		return fmt.Errorf("servers: import slot %d: %w", slot, err)
	}
	if _, err := from.Command("CLUSTER", "SETSLOT", n, "MIGRATING", target.id); err != nil {
		return fmt.Errorf("servers: migrate slot %d: %w", slot, err)
	}
	if err := moveKeys(n, from, to); err != nil {
		return fmt.Errorf("servers: keys of slot %d: %w", slot, err)
	}
	return s.assign(n, target.id, from, to)
}

// moveKeys empties a slot. While it is open, no new keys come into it at the source.
func moveKeys(slot string, from, to *Node) error {
	host, port := split(to.Direct())
	for {
		keys, err := from.Command("CLUSTER", "GETKEYSINSLOT", slot, strconv.Itoa(migrateKeys))
		if keys == "" || err != nil {
			return err
		}
		// REPLACE is for a move that is finished later: what the source still has is the truth.
		args := []string{"MIGRATE", host, port, "", "0", migrateTimeout, "REPLACE", "KEYS"}
		if _, err := from.Command(append(args, strings.Split(keys, "\n")...)...); err != nil {
			return err
		}
	}
}

// assign tells the target first, so that at no time nobody owns the slot, then the source and the other masters.
func (s *Set) assign(slot, id string, from, to *Node) error {
	masters, err := s.Masters()
	if err != nil {
		return err
	}
	told := map[*Node]bool{}
	for _, n := range append([]*Node{to, from}, masters...) {
		if told[n] {
			continue
		}
		told[n] = true
		if _, err := n.Command("CLUSTER", "SETSLOT", slot, "NODE", id); err != nil {
			return fmt.Errorf("servers: tell %s who owns slot %s: %w", n.Direct(), slot, err)
		}
	}
	return nil
}
