package redisstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/cluster"
)

// A stored plan is a version byte, term and revision in decimal with a space behind each, which scripts read and every
// version has, and a msgpack map.
const planVersion = 1

const (
	fieldPlanWorkers = 1 + iota
	fieldSpread
)

const (
	maxPlanBytes = 4 << 20
	maxTerm      = 1 << 53 // scripts hold integers up to here
)

var _ dispatch.Leadership = (*Store)(nil)

// PublishPlan implements dispatch.Leadership. A plan that is stored already is not announced again.
//
// Errors: *dispatch.FieldError for a Term below 1, a Revision below 0, and a plan of more than 4 MiB.
func (s *Store) PublishPlan(ctx context.Context, p *cluster.Plan) error {
	plan, err := encodePlan(p)
	if err != nil {
		return err
	}
	v, err := s.run(ctx, evenUncertain, s.scripts.planPublish, []string{s.termKey(), s.planKey()},
		p.Term, p.Revision, plan, s.wakeChannel(), announcement(dispatch.HintPlan))
	if err == nil && v == int64(0) {
		return dispatch.ErrLeadershipLost
	}
	return err
}

// Plan implements dispatch.Leadership. A plan of a format that this program does not know is none.
func (s *Store) Plan(ctx context.Context) (*cluster.Plan, error) {
	var plan string
	err := s.persist(ctx, evenUncertain, func(ctx context.Context) error {
		var err error
		plan, err = s.client.Get(ctx, s.planKey()).Result()
		return err
	})
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if plan != "" && plan[0] != planVersion {
		return nil, nil
	}
	return decodePlan(plan)
}

func encodePlan(p *cluster.Plan) (string, error) {
	switch {
	case p == nil:
		return "", &dispatch.FieldError{Field: "Plan", Problem: "is nil"}
	case p.Term < 1 || p.Term > maxTerm:
		return "", &dispatch.FieldError{Field: "Plan.Term", Problem: "is not that of a leader"}
	case p.Revision < 0 || p.Revision > maxTerm:
		return "", &dispatch.FieldError{Field: "Plan.Revision", Problem: "is below 0 or above 2^53"}
	}
	w := newWriter()
	w.buf.WriteByte(planVersion)
	fmt.Fprintf(&w.buf, "%d %d ", p.Term, p.Revision)
	w.mapOf(present(len(p.Workers) > 0, len(p.Spread) > 0))
	if len(p.Workers) > 0 {
		w.field(fieldPlanWorkers)
		w.arrayOf(len(p.Workers))
		for _, worker := range p.Workers {
			w.arrayOf(3)
			w.string(string(worker.ID))
			w.names(worker.Queues)
			w.int(int64(worker.Concurrency))
		}
	}
	if len(p.Spread) > 0 {
		w.field(fieldSpread)
		w.mapOf(len(p.Spread))
		for _, queue := range slices.Sorted(maps.Keys(p.Spread)) {
			w.string(queue)
			w.int(int64(p.Spread[queue]))
		}
	}
	b, err := w.result()
	if err == nil && len(b) > maxPlanBytes {
		err = &dispatch.FieldError{Field: "Plan", Problem: fmt.Sprintf("is larger than %d bytes", maxPlanBytes)}
	}
	return b, err
}

func decodePlan(plan string) (*cluster.Plan, error) {
	if plan == "" || plan[0] != planVersion {
		return nil, fmt.Errorf("%w: plan of an unknown format", errMalformed)
	}
	term, rest, _ := strings.Cut(plan[1:], " ")
	revision, record, found := strings.Cut(rest, " ")
	p := new(cluster.Plan)
	var err error
	if p.Term, err = strconv.ParseInt(term, 10, 64); err != nil {
		return nil, fmt.Errorf("%w: term of a plan: %w", errMalformed, err)
	}
	if p.Revision, err = strconv.ParseInt(revision, 10, 64); err != nil || !found {
		return nil, fmt.Errorf("%w: revision of a plan", errMalformed)
	}
	err = readMap(record, func(r *reader, field uint64) {
		switch field {
		case fieldPlanWorkers:
			for range r.arrayLen() {
				p.Workers = append(p.Workers, r.planWorker())
				if r.err != nil {
					return
				}
			}
		case fieldSpread:
			p.Spread = make(map[string]int)
			for range r.mapLen() {
				queue := r.string()
				p.Spread[queue] = int(r.int())
			}
		default:
			r.skip()
		}
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// planWorker reads an array of ID, queues and concurrency. A later version may append to it.
func (r *reader) planWorker() cluster.PlanWorker {
	n := r.arrayLen()
	if n < 3 {
		r.keep(fmt.Errorf("worker of %d fields", n))
		return cluster.PlanWorker{}
	}
	w := cluster.PlanWorker{ID: cluster.WorkerID(r.string()), Queues: r.names(), Concurrency: int(r.int())}
	for range n - 3 {
		r.skip()
	}
	return w
}
