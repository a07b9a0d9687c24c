package redisstore

import (
	"regexp"
	"strconv"

	"github.com/dispatchkit/dispatch/cluster"
)

// Everything of a queue is under the hash tag of its name, and everything of the fleet under "{~}", which no queue can
// be called. So each script touches one slot of a cluster.

var prefixPattern = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,50}$`)

// queueKeys are the keys of one queue.
type queueKeys struct {
	due, leased, leases, tasks, state, done, dead, names, meta string
}

func (s *Store) queueKeys(queue string) queueKeys {
	p := s.prefix + ":{" + queue + "}:"
	return queueKeys{
		due: p + "due", leased: p + "leased", leases: p + "leases", tasks: p + "tasks", state: p + "state",
		done: p + "done", dead: p + "dead", names: p + "names", meta: p + "meta",
	}
}

// enqueueMemo holds the last enqueue of a lane of this store to a queue, claimMemo and settleMemo a worker's last claim
// and settle of a queue, all with a time to live.
func (s *Store) enqueueMemo(queue string, lane int) string {
	return s.prefix + ":{" + queue + "}:stored:" + s.lanes.name + "-" + strconv.Itoa(lane)
}

func (s *Store) claimMemo(queue string, w cluster.WorkerID) string {
	return s.prefix + ":{" + queue + "}:claimed:" + string(w)
}

func (s *Store) settleMemo(queue string, w cluster.WorkerID) string {
	return s.prefix + ":{" + queue + "}:settled:" + string(w)
}

// The keys of the fleet.
func (s *Store) queuesKey() string   { return s.prefix + ":{~}:queues" }   // set of queue names
func (s *Store) activeKey() string   { return s.prefix + ":{~}:active" }   // zset: when a queue has something to do
func (s *Store) expiringKey() string { return s.prefix + ":{~}:expiring" } // zset: when a queue has something to clean up
func (s *Store) schemaKey() string   { return s.prefix + ":{~}:schema" }   // string: version of this layout
func (s *Store) wakeChannel() string { return s.prefix + ":wake" }
