package redisstore

import (
	"fmt"
	"math"

	"github.com/dispatchkit/dispatch"
)

// Stored settings of a queue are a version byte and a msgpack map; the rules for fields are those of records. What
// scripts need of them stands beside it in fields of its own; see limitArgs.
const settingsVersion = 1

const (
	fieldRate = 1 + iota
	fieldBurst
	fieldConcurrent
	fieldWeight
	fieldQueueRetry
	fieldQueueRequires
	fieldQueueSecret
	fieldDeadLetter
	fieldTaskTTL
	fieldNoThrottle
)

func encodeSettings(q *dispatch.Queue) (string, error) {
	w := newWriter()
	ttl := ms(q.TaskTTL)
	w.buf.WriteByte(settingsVersion)
	w.mapOf(present(q.Rate != 0, q.Burst != 0, q.MaxConcurrent != 0, q.Weight != 0, true, len(q.Requires) > 0, q.Secret != "",
		q.DeadLetterQueue != "", ttl != 0, q.NoThrottle))
	if q.Rate != 0 {
		w.field(fieldRate)
		w.float(q.Rate)
	}
	w.intField(fieldBurst, int64(q.Burst))
	w.intField(fieldConcurrent, int64(q.MaxConcurrent))
	w.intField(fieldWeight, int64(q.Weight))
	w.field(fieldQueueRetry)
	w.retry(&q.Retry)
	w.stringField(fieldQueueRequires, formatResources(q.Requires))
	w.stringField(fieldQueueSecret, q.Secret)
	w.stringField(fieldDeadLetter, q.DeadLetterQueue)
	w.intField(fieldTaskTTL, ttl)
	if q.NoThrottle {
		w.intField(fieldNoThrottle, 1)
	}
	return w.result()
}

func decodeSettings(s string) (*dispatch.Queue, error) {
	if s == "" || s[0] != settingsVersion {
		return nil, fmt.Errorf("%w: settings of an unknown format", errMalformed)
	}
	q := new(dispatch.Queue)
	err := readMap(s[1:], func(r *reader, field uint64) {
		switch field {
		case fieldRate:
			q.Rate = r.float()
		case fieldBurst:
			q.Burst = int(r.int())
		case fieldConcurrent:
			q.MaxConcurrent = int(r.int())
		case fieldWeight:
			q.Weight = int(r.int())
		case fieldQueueRetry:
			r.retry(&q.Retry)
		case fieldQueueRequires:
			q.Requires = parseResources(r.string())
		case fieldQueueSecret:
			q.Secret = r.string()
		case fieldDeadLetter:
			q.DeadLetterQueue = r.string()
		case fieldTaskTTL:
			q.TaskTTL = r.millis()
		case fieldNoThrottle:
			q.NoThrottle = r.int() == 1
		default:
			r.skip()
		}
	})
	return q, err
}

// limitArgs are a queue's limits as the scripts read them: µs between two attempts, burst, concurrent attempts; 0 is no
// limit.
func limitArgs(q *dispatch.Queue) (interval, burst, concurrent int64) {
	if q.Rate > 0 {
		interval = max(int64(math.Round(1e6/q.Rate)), 1)
		burst = int64(q.EffectiveBurst())
	}
	return interval, burst, int64(max(q.MaxConcurrent, 0))
}
