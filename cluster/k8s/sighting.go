package k8s

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
)

// sighting is a Lease as it was seen last, and since when its holder has shown no sign of life, by the local clock.
type sighting struct {
	lease *coordinationv1.Lease // never changed: who wants to write makes a copy
	since time.Time
}

// sign is what changes with each sign of life. The resource version is no part of it: it also changes when somebody
// else marks the row dead, or sets a label.
type sign struct {
	uid    types.UID
	holder string
	seen   time.Time
}

func signOf(lease *coordinationv1.Lease) sign {
	return sign{lease.UID, holder(lease), renewed(lease)}
}

// note takes in a Lease that was read or written just now, and returns since when it shows no sign of life. A Lease that
// was never seen before counts from now, however old its times are: they are by another clock. When answers overtake
// one another a Lease looks younger than it is, never older.
func (s *Store) note(lease *coordinationv1.Lease) time.Time {
	now := s.opts.Clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	before, known := s.rows[lease.Name]
	if known && signOf(before.lease) == signOf(lease) {
		now = before.since
	}
	s.rows[lease.Name] = sighting{lease, now}
	return now
}

// last returns a Lease as it was seen last, and nil if it was not.
func (s *Store) last(name string) *coordinationv1.Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rows[name].lease
}

// forget drops a Lease that is gone.
func (s *Store) forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.rows, name)
	delete(s.owed, name)
}

// keep notes all Leases of the fleet, and forgets all others.
func (s *Store) keep(items []coordinationv1.Lease) {
	names := make(map[string]bool, len(items))
	for i := range items {
		names[items[i].Name] = true
		s.note(&items[i])
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.rows {
		if !names[name] {
			delete(s.rows, name)
			delete(s.owed, name)
		}
	}
}

func holder(lease *coordinationv1.Lease) string {
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

func renewed(lease *coordinationv1.Lease) time.Time {
	if lease.Spec.RenewTime == nil {
		return time.Time{}
	}
	return lease.Spec.RenewTime.UTC()
}
