package redisstore

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/cluster"
)

// Stored progress is a header that scripts read, version (1) and attempts (4, big-endian), and a msgpack map. The rules
// for fields are those of records.
const (
	progressVersion = 1
	progressHeader  = 5
	maxHistory      = 1000 // attempts; far more than are ever kept, and few enough that a byte for each is no bomb
)

// The fields of progress, and of each attempt in its history. Times are in ms.
const (
	fieldFirst      = 1
	fieldLast       = 2
	fieldHistory    = 3
	fieldResponses  = 4
	fieldExecutions = 5
	fieldResult     = 6

	fieldNumber   = 1
	fieldStarted  = 2
	fieldDuration = 3
	fieldWorker   = 4
	fieldToken    = 5
	fieldStatus   = 6
	fieldErrKind  = 7
	fieldError    = 8
)

func encodeProgress(p *dispatch.Progress) (string, error) {
	w := newWriter()
	head := [progressHeader]byte{progressVersion}
	binary.BigEndian.PutUint32(head[1:], uint32(p.Attempts))
	w.buf.Write(head[:])
	w.mapOf(3 + present(p.Responses != 0, p.Executions != 0, len(p.Result) > 0))
	w.field(fieldFirst)
	w.int(toMillis(p.FirstAttempt))
	w.field(fieldLast)
	w.int(toMillis(p.LastAttempt))
	w.field(fieldHistory)
	w.arrayOf(len(p.History))
	for i := range p.History {
		w.attempt(&p.History[i])
	}
	w.intField(fieldResponses, int64(p.Responses))
	w.intField(fieldExecutions, int64(p.Executions))
	if len(p.Result) > 0 {
		w.field(fieldResult)
		w.bytes(p.Result)
	}
	return w.result()
}

func (w *writer) attempt(a *dispatch.AttemptRecord) {
	started, duration := toMillis(a.StartedAt), max(a.Duration.Milliseconds(), 0) // a clock that is set back measures less than no time
	w.mapOf(present(a.Number != 0, started != 0, duration != 0, a.Worker != "", a.Token != 0,
		a.Status != 0, a.ErrorKind != "", a.Error != ""))
	w.intField(fieldNumber, int64(a.Number))
	w.intField(fieldStarted, started)
	w.intField(fieldDuration, duration)
	w.stringField(fieldWorker, string(a.Worker))
	w.intField(fieldToken, a.Token)
	w.intField(fieldStatus, int64(a.Status))
	w.stringField(fieldErrKind, string(a.ErrorKind))
	w.stringField(fieldError, a.Error)
}

// decodeProgress decodes stored progress; empty is a task that was never attempted.
func decodeProgress(s string) (dispatch.Progress, error) {
	var p dispatch.Progress
	if s == "" {
		return p, nil
	}
	if len(s) < progressHeader || s[0] != progressVersion {
		return p, fmt.Errorf("%w: progress of an unknown format", errMalformed)
	}
	p.Attempts = int(binary.BigEndian.Uint32([]byte(s[1:progressHeader])))
	err := readMap(s[progressHeader:], func(r *reader, field uint64) {
		switch field {
		case fieldFirst:
			p.FirstAttempt = millis(r.int())
		case fieldLast:
			p.LastAttempt = millis(r.int())
		case fieldResponses:
			p.Responses = int(r.int())
		case fieldExecutions:
			p.Executions = int(r.int())
		case fieldResult:
			p.Result = r.bytes()
		case fieldHistory:
			n := r.arrayLen()
			if n > maxHistory {
				r.keep(fmt.Errorf("a history of %d attempts", n))
			}
			for range min(n, maxHistory) {
				p.History = append(p.History, r.attempt())
				if r.err != nil {
					return
				}
			}
		default:
			r.skip()
		}
	})
	return p, err
}

func (r *reader) attempt() dispatch.AttemptRecord {
	var a dispatch.AttemptRecord
	r.fields(func(r *reader, field uint64) {
		switch field {
		case fieldNumber:
			a.Number = int(r.int())
		case fieldStarted:
			a.StartedAt = millis(r.int())
		case fieldDuration:
			a.Duration = r.millis()
		case fieldWorker:
			a.Worker = cluster.WorkerID(r.string())
		case fieldToken:
			a.Token = r.int()
		case fieldStatus:
			a.Status = int(r.int())
		case fieldErrKind:
			a.ErrorKind = dispatch.ErrorKind(r.string())
		case fieldError:
			a.Error = r.string()
		default:
			r.skip()
		}
	})
	return a
}

func toMillis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
