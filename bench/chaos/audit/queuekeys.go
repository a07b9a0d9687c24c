package audit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// places are the indexes of a queue, of which each task is in exactly one.
var places = []string{StateDue, StateLeased, StateDone, StateDead, StateCancelled}

// queueKeys is what the keys of one queue hold.
type queueKeys struct {
	name    string
	indexes map[string][]redis.Z // by place
	names   []redis.Z            // tombstones
	records map[string]string    // task ID to record
	state   map[string]string    // task ID to progress
	leases  map[string]string    // task ID to lease
	meta    map[string]string
}

// readQueue reads the keys of one queue in one transaction.
func readQueue(ctx context.Context, client redis.UniversalClient, prefix, name string) (*queueKeys, error) {
	key := func(of string) string { return prefix + ":{" + name + "}:" + of }
	indexes := make(map[string]*redis.ZSliceCmd)
	var names *redis.ZSliceCmd
	var records, state, leases, meta *redis.MapStringStringCmd
	_, err := client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		for _, place := range places {
			indexes[place] = p.ZRangeWithScores(ctx, key(place), 0, -1)
		}
		names = p.ZRangeWithScores(ctx, key("names"), 0, -1)
		records, state = p.HGetAll(ctx, key("tasks")), p.HGetAll(ctx, key("state"))
		leases, meta = p.HGetAll(ctx, key("leases")), p.HGetAll(ctx, key("meta"))
		return nil
	})
	if err != nil {
		return nil, err
	}
	q := &queueKeys{
		name: name, indexes: make(map[string][]redis.Z), names: names.Val(),
		records: records.Val(), state: state.Val(), leases: leases.Val(), meta: meta.Val(),
	}
	for place, cmd := range indexes {
		q.indexes[place] = cmd.Val()
	}
	return q, nil
}

func (q *queueKeys) broken(s *Snap, format string, args ...any) {
	s.Broken = append(s.Broken, "queue "+q.name+": "+fmt.Sprintf(format, args...))
}

// tell adds what the queue holds to a snapshot.
func (q *queueKeys) tell(s *Snap) {
	q.tellPlaces(s)
	q.tellLeases(s)
	for id := range q.state {
		if _, ok := q.records[id]; !ok {
			q.broken(s, "task %s has progress and no record", id)
		}
	}
	for _, z := range q.names {
		key := TaskKey{q.name, z.Member.(string)}
		if _, there := s.Finals[key]; !there {
			s.Finals[key] = Final{State: StateTombstone, At: int64(z.Score)}
		}
	}
	if len(q.records)+len(q.names) > 0 && q.meta["generation"] == "" {
		q.broken(s, "it has tasks or names, and no settings")
	}
}

// tellPlaces checks that each record is in one index and each indexed ID has a record, and notes where each task is.
func (q *queueKeys) tellPlaces(s *Snap) {
	for _, place := range places {
		for _, z := range q.indexes[place] {
			id := z.Member.(string)
			key := TaskKey{q.name, id}
			if other, twice := s.Finals[key]; twice {
				q.broken(s, "task %s is %s and %s", id, other.State, place)
			}
			record, ok := q.records[id]
			if !ok {
				q.broken(s, "task %s is %s and has no record", id, place)
			}
			f := Final{State: place, At: int64(z.Score)}
			if place == StateDue && purged(record, q.meta["generation"]) {
				f.State = StatePurged
			}
			if text, attempted := q.state[id]; attempted {
				p, err := readProgress(text)
				if err != nil {
					q.broken(s, "progress of task %s: %v", id, err)
				}
				f.Attempts, f.Token, f.Result = p.attempts, p.token, p.result
			}
			s.Finals[key] = f
		}
	}
	for id := range q.records {
		if _, ok := s.Finals[TaskKey{q.name, id}]; !ok {
			q.broken(s, "task %s has a record and is nowhere", id)
		}
	}
}

// tellLeases checks that whatever is leased has a lease and the other way round, and that each lease is one that the last
// claim can have given.
func (q *queueKeys) tellLeases(s *Snap) {
	last, _ := strconv.ParseInt(q.meta["token"], 10, 64)
	holders := make(map[int64]string)
	leased := make(map[string]bool)
	for _, z := range q.indexes[StateLeased] {
		id := z.Member.(string)
		if leased[id] = true; q.leases[id] == "" {
			q.broken(s, "task %s is leased to nobody", id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(q.leases)) {
		if !leased[id] {
			q.broken(s, "task %s has a lease that never ends", id)
		}
		l, err := readLease(q.leases[id])
		if err != nil {
			q.broken(s, "task %s: %v", id, err)
			continue
		}
		if other, twice := holders[l.token]; twice {
			q.broken(s, "tasks %s and %s have the same token", other, id)
		}
		if holders[l.token] = id; l.token > last {
			q.broken(s, "task %s has token %d, and the last one given is %d", id, l.token, last)
		}
		key := TaskKey{q.name, id}
		f, there := s.Finals[key]
		_, attempted := q.state[id]
		if there && (l.attempt != f.Attempts+1 || l.attempted != attempted) {
			q.broken(s, "task %s was leased for attempt %d, and %d were made", id, l.attempt, f.Attempts)
		}
		if f.State == StateLeased {
			f.Token = l.token
			s.Finals[key] = f
		}
	}
}

// lease is a value of the hash of leases: token, worker, number of the claim, attempt with a "+" if there is progress, and
// perhaps when the task was asked to run at once.
type lease struct {
	token     int64
	attempt   int
	attempted bool
}

func readLease(text string) (lease, error) {
	fields := strings.Fields(text)
	if len(fields) != 4 && len(fields) != 5 {
		return lease{}, fmt.Errorf("a lease %q", text)
	}
	var l lease
	var number string
	number, l.attempted = strings.CutSuffix(fields[3], "+")
	token, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return lease{}, fmt.Errorf("a lease %q", text)
	}
	l.token = token
	if l.attempt, err = strconv.Atoi(number); err != nil {
		return lease{}, fmt.Errorf("a lease %q", text)
	}
	return l, nil
}
