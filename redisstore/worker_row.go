package redisstore

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/cluster"
)

// The record in a worker's row is a version byte and a msgpack map; the rules for fields are those of task records. What
// scripts change stands beside it in fields of its own: state and created.
const workerVersion = 1

const (
	fieldHostname = 1 + iota
	fieldQueues
	fieldConcurrency
	fieldCapacity
	fieldWorkerMetadata
)

// Limits of a row. Whoever lists the workers reads all of them, again and again.
const (
	maxHostname    = 255
	maxServed      = 1000
	maxWorkerBytes = 256 << 10
)

var workerIDPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func checkWorkerID(id cluster.WorkerID) error {
	if !workerIDPattern.MatchString(string(id)) {
		return &dispatch.FieldError{Field: "Worker.ID", Problem: "does not match " + workerIDPattern.String()}
	}
	return nil
}

func checkWorker(w *cluster.Worker) error {
	if w == nil {
		return &dispatch.FieldError{Field: "Worker", Problem: "is nil"}
	}
	if err := checkWorkerID(w.ID); err != nil {
		return err
	}
	switch {
	case len(w.Hostname) > maxHostname:
		return &dispatch.FieldError{Field: "Worker.Hostname", Problem: fmt.Sprintf("is longer than %d bytes", maxHostname)}
	case len(w.Queues) > maxServed:
		return &dispatch.FieldError{Field: "Worker.Queues", Problem: fmt.Sprintf("holds more than %d names", maxServed)}
	case w.Concurrency < 0:
		return &dispatch.FieldError{Field: "Worker.Concurrency", Problem: "is below 0"}
	case !w.CreatedAt.IsZero() && w.CreatedAt.UnixMilli() <= 0:
		return &dispatch.FieldError{Field: "Worker.CreatedAt", Problem: "is before 1970"}
	}
	switch w.State {
	case "", cluster.StateActive, cluster.StateDraining, cluster.StateDead:
		return nil
	}
	return &dispatch.FieldError{Field: "Worker.State", Problem: "is not active, draining or dead"}
}

// encodeWorker writes the record of a row. Equal workers have equal records.
func encodeWorker(w *cluster.Worker) (string, error) {
	out := newWriter()
	out.buf.WriteByte(workerVersion)
	out.mapOf(present(w.Hostname != "", len(w.Queues) > 0, w.Concurrency != 0, w.Capacity != nil, len(w.Metadata) > 0))
	out.stringField(fieldHostname, w.Hostname)
	if len(w.Queues) > 0 {
		out.field(fieldQueues)
		out.names(w.Queues)
	}
	out.intField(fieldConcurrency, int64(w.Concurrency))
	if w.Capacity != nil { // one that is empty states that there is nothing
		out.field(fieldCapacity)
		out.mapOf(len(w.Capacity))
		for _, name := range slices.Sorted(maps.Keys(w.Capacity)) {
			out.string(name)
			out.int(w.Capacity[name])
		}
	}
	if len(w.Metadata) > 0 {
		out.field(fieldWorkerMetadata)
		out.mapOf(len(w.Metadata))
		for _, name := range slices.Sorted(maps.Keys(w.Metadata)) {
			out.string(name)
			out.string(w.Metadata[name])
		}
	}
	b, err := out.result()
	if err == nil && len(b) > maxWorkerBytes {
		err = &dispatch.FieldError{Field: "Worker", Problem: fmt.Sprintf("is larger than %d bytes", maxWorkerBytes)}
	}
	return b, err
}

// decodeWorker reads the record of a row into a worker.
func decodeWorker(record string, w *cluster.Worker) error {
	if record == "" || record[0] != workerVersion {
		return fmt.Errorf("%w: worker of an unknown format", errMalformed)
	}
	return readMap(record[1:], func(r *reader, field uint64) {
		switch field {
		case fieldHostname:
			w.Hostname = r.string()
		case fieldQueues:
			w.Queues = r.names()
		case fieldConcurrency:
			w.Concurrency = int(r.int())
		case fieldCapacity:
			w.Capacity = make(cluster.Resources)
			for range r.mapLen() {
				name := r.string()
				w.Capacity[name] = r.int()
			}
		case fieldWorkerMetadata:
			w.Metadata = make(map[string]string)
			for range r.mapLen() {
				name := r.string()
				w.Metadata[name] = r.string()
			}
		default:
			r.skip()
		}
	})
}

// names writes a list of texts.
func (w *writer) names(list []string) {
	w.arrayOf(len(list))
	for _, s := range list {
		w.string(s)
	}
}

func (r *reader) names() []string {
	var list []string
	for range r.arrayLen() {
		list = append(list, r.string())
	}
	return list
}

// leadership is who led when a script ran, and how long it still had.
type leadership struct {
	id    cluster.WorkerID // empty: nobody
	until *time.Time       // nil: without end, which only somebody else can have set
}

// on marks the one worker of these that leads.
func (l leadership) on(workers []*cluster.Worker) {
	for _, w := range workers {
		if w.ID == l.id {
			w.IsLeader, w.LeaderUntil = true, l.until
		}
	}
}

// readWorkers reads what worker_read and worker_reap return. Of a record that this program cannot read, say because a
// newer one has written it, the worker's ID, state and times are known all the same: it is there, and counts.
func (s *Store) readWorkers(sc *script, v any) ([]*cluster.Worker, leadership, error) {
	r := replyOf(sc, v)
	now, leads, left := r.int(), leadership{id: cluster.WorkerID(r.string())}, r.int()
	if left >= 0 {
		until := millis(now + left)
		leads.until = &until
	}
	var workers []*cluster.Worker
	for r.left() > 0 && r.err == nil {
		w := &cluster.Worker{ID: cluster.WorkerID(r.string()), LastSeen: millis(r.int())}
		if err := decodeWorker(r.string(), w); err != nil {
			s.log.Warn("redisstore: row of a worker cannot be read", "worker", w.ID, "error", err)
			*w = cluster.Worker{ID: w.ID, LastSeen: w.LastSeen}
		}
		w.State, w.CreatedAt = cluster.WorkerState(r.string()), millis(r.int())
		workers = append(workers, w)
	}
	return workers, leads, r.err
}
