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
	due, leased, leases, tasks, state, done, dead, cancelled, names, meta string
}

func (s *Store) queueKeys(queue string) queueKeys {
	p := s.prefix + ":{" + queue + "}:"
	return queueKeys{
		due: p + "due", leased: p + "leased", leases: p + "leases", tasks: p + "tasks", state: p + "state",
		done: p + "done", dead: p + "dead", cancelled: p + "cancelled", names: p + "names", meta: p + "meta",
	}
}

// callMemo holds the last numbered call of a lane of this store to a queue, claimMemo and settleMemo a worker's last claim
// and settle of a queue, all with a time to live.
func (s *Store) callMemo(queue string, lane int) string {
	return s.prefix + ":{" + queue + "}:stored:" + s.lanes.name + "-" + strconv.Itoa(lane)
}

func (s *Store) claimMemo(queue string, w cluster.WorkerID) string {
	return s.prefix + ":{" + queue + "}:claimed:" + string(w)
}

func (s *Store) settleMemo(queue string, w cluster.WorkerID) string {
	return s.prefix + ":{" + queue + "}:settled:" + string(w)
}

// The keys of the fleet.
func (s *Store) queuesKey() string   { return s.prefix + ":{~}:queues" }    // set of queue names
func (s *Store) activeKey() string   { return s.prefix + ":{~}:active" }    // zset: when a queue has something to do
func (s *Store) expiringKey() string { return s.prefix + ":{~}:expiring" }  // zset: when a queue has something to clean up
func (s *Store) cronKey() string     { return s.prefix + ":{~}:cron" }      // hash: cron entries
func (s *Store) cronNextKey() string { return s.prefix + ":{~}:cron:next" } // zset: when the leader has to look at an entry
func (s *Store) cronLastKey() string { return s.prefix + ":{~}:cron:last" } // string: the highest revision of an entry ever
func (s *Store) schemaKey() string   { return s.prefix + ":{~}:schema" }    // string: version of this layout
func (s *Store) workersKey() string  { return s.prefix + ":{~}:workers" }   // zset: when a worker was last seen
func (s *Store) leaderKey() string   { return s.prefix + ":{~}:leader" }    // string: ID of the worker that leads
func (s *Store) termKey() string     { return s.prefix + ":{~}:term" }      // string: the highest term of a leader
func (s *Store) planKey() string     { return s.prefix + ":{~}:plan" }      // string: the leader's plan

// workerKey is the row of a worker, with a time to live.
func (s *Store) workerKey(w cluster.WorkerID) string { return s.prefix + ":{~}:worker:" + string(w) }

// A subscriber of a cluster hears by the master that has the slot of the channel. With the fleet's keys that is the one without which
// nobody could be told anything anyway.
func (s *Store) wakeChannel() string  { return s.prefix + ":{~}:wake" }
func (s *Store) endedChannel() string { return s.prefix + ":{~}:ended" }
