package servers

// Slot is the hash slot of a key.
func (s *Set) Slot(key string) (int, error) { panic("not yet") }

// MasterOf is the master of a key's slot in a cluster, and the primary in other sets.
func (s *Set) MasterOf(key string) (*Node, error) { panic("not yet") }

// Masters are the nodes that own slots.
func (s *Set) Masters() ([]*Node, error) { panic("not yet") }

// ReplicaOf is the replica of a master, dead or alive.
func (s *Set) ReplicaOf(master *Node) (*Node, error) { panic("not yet") }

// MigrateSlot moves a slot with everything in it from one master to another while clients use it, as a reshard by
// redis-cli does. Clients that ask for a key that is on its way are told ASK or TRYAGAIN.
func (s *Set) MigrateSlot(slot int, from, to *Node) error { panic("not yet") }
