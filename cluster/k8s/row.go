package k8s

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/dispatchkit/dispatch/cluster"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What the objects carry besides what a Lease has anyway.
const (
	domain = "dispatchkit.github.io/"

	fleetLabel = domain + "fleet" // the prefix: all Leases of a fleet are listed by it

	recordAnnotation = domain + "worker" // on a worker's Lease: the cluster.Worker as JSON
	ttlAnnotation    = domain + "ttl"    // on the leader's Lease: a Go duration; leaseDurationSeconds is rounded up

	podIDAnnotation    = domain + "worker-id"
	podStateAnnotation = domain + "worker-state"
)

// updateOptions names the writer in the managed fields.
var updateOptions = metav1.UpdateOptions{FieldManager: "dispatch"}

func (s *Store) rowName(id cluster.WorkerID) string { return s.opts.Prefix + "-worker-" + string(id) }

func (s *Store) leaderName() string { return s.opts.Prefix + "-leader" }

// blank makes a Lease of the fleet.
func (s *Store) blank(name string) *coordinationv1.Lease {
	lease := &coordinationv1.Lease{}
	lease.Name, lease.Namespace = name, s.namespace
	return lease
}

// annotate sets an annotation of a Lease of the fleet, and its label in case that somebody has removed it.
func (s *Store) annotate(lease *coordinationv1.Lease, key, value string) {
	if lease.Labels == nil {
		lease.Labels = map[string]string{}
	}
	lease.Labels[fleetLabel] = s.opts.Prefix
	if lease.Annotations == nil {
		lease.Annotations = map[string]string{}
	}
	lease.Annotations[key] = value
}

// put writes a worker into its Lease.
func (s *Store) put(lease *coordinationv1.Lease, w cluster.Worker) error {
	w.IsLeader, w.LeaderUntil, w.LastSeen = false, nil, time.Time{} // they are not the worker's to say
	record, err := json.Marshal(w)
	if err != nil {
		return err
	}
	s.annotate(lease, recordAnnotation, string(record))
	id := string(w.ID)
	lease.Spec.HolderIdentity = &id
	return nil
}

// worker reads a worker from its Lease. It returns nil for what is no whole row: then there is no such worker.
func (s *Store) worker(lease *coordinationv1.Lease) *cluster.Worker {
	w := &cluster.Worker{}
	if json.Unmarshal([]byte(lease.Annotations[recordAnnotation]), w) != nil || w.State == "" || string(w.ID) != holder(lease) ||
		lease.Name != s.rowName(w.ID) || lease.Spec.RenewTime == nil {
		return nil
	}
	w.LastSeen = renewed(lease)
	return w
}

// isRow says whether a Lease of the fleet is a worker's, whole or not.
func (s *Store) isRow(lease *coordinationv1.Lease) bool {
	return strings.HasPrefix(lease.Name, s.opts.Prefix+"-worker-")
}

// touch notes that the holder of a Lease shows a sign of life. Others tell by a change: so it has to be one, even if the
// clock stands still.
func touch(lease *coordinationv1.Lease, now time.Time) {
	now = now.UTC().Truncate(time.Microsecond) // as precise as a Lease is
	if now.Equal(renewed(lease)) {
		now = now.Add(time.Microsecond)
	}
	lease.Spec.RenewTime = &metav1.MicroTime{Time: now}
}
