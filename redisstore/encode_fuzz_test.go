package redisstore

import (
	"net/http"
	"testing"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/cluster"
)

// What is written can be read, whatever the values: a record that cannot is a task that nobody ever runs.

func FuzzEncodeRecord(f *testing.F) {
	f.Add("k", "", "", "", "", []byte(nil), int64(time.Second), int64(0), int64(0), uint64(0), uint8(0))
	f.Add("", "https://a.example", "PUT", "X-A", "1", []byte("p"), int64(1), int64(-1), int64(time.Hour), uint64(1<<63), uint8(0xff))
	f.Add("k", "", "", "", "", []byte(""), int64(time.Hour), int64(999_999), int64(-5), uint64(1), uint8(0x0f))
	f.Fuzz(func(t *testing.T, kind, url, method, header, value string, payload []byte, timeout, retention, window int64, nonce uint64, has uint8) {
		sub := dispatch.Submission{Named: has&1 != 0, Derived: has&2 != 0, Nonce: nonce, Window: time.Duration(window)}
		sub.Kind, sub.URL, sub.Method, sub.Payload, sub.Secret = kind, url, method, payload, value
		sub.Timeout, sub.Retention = time.Duration(timeout), time.Duration(retention)
		if has&4 != 0 {
			sub.Header = http.Header{header: {value, ""}, kind: nil}
			sub.Metadata = map[string]string{header: value}
		}
		if has&8 != 0 {
			sub.Retry = &dispatch.RetryConfig{MaxAttempts: int(timeout), MinBackoff: sub.Retention, Jitter: float64(has) / 255}
		}
		if has&16 != 0 {
			sub.Requires = cluster.Resources{"cpu": retention, "gpu": window}
		}
		record, err := encodeRecord(&sub)
		ok(t, err)
		var got dispatch.Submission
		ok(t, decodeSubmission(stamped(record), &got))
		if again, err := encodeRecord(&got); err != nil || again != record && timeout >= 0 && window >= 0 && window < 1<<40*int64(time.Millisecond) {
			t.Errorf("%+v is written %q, read, and written %q, %v", sub, record, again, err)
		}
		if got.Kind != kind || got.URL != url || string(got.Payload) != string(payload) || got.Named != sub.Named || got.Nonce != nonce && (sub.Named || nonce == 0) {
			t.Errorf("%+v is read as %+v", sub, got)
		}
	})
}

func FuzzEncodeProgress(f *testing.F) {
	f.Add(uint32(1), int64(1772366400123), int64(time.Second), int64(1), "w-a", "non_2xx", "boom", []byte("r"))
	f.Add(uint32(0), int64(0), int64(-time.Hour), int64(0), "", "", "", []byte(nil)) // the clock was set back during the attempt
	f.Add(uint32(1<<31), int64(-1), int64(-1), int64(-1), "\xff", "", "\x00", []byte{})
	f.Fuzz(func(t *testing.T, attempts uint32, at, duration, number int64, w, kind, text string, result []byte) {
		p := dispatch.Progress{Attempts: int(attempts), FirstAttempt: millis(at), LastAttempt: millis(number), Responses: int(number),
			Executions: int(at), Result: result}
		for i := range attempts % 3 {
			p.History = append(p.History, dispatch.AttemptRecord{Number: int(number), StartedAt: millis(at), Duration: time.Duration(duration),
				Worker: cluster.WorkerID(w), Token: at, Status: int(i), ErrorKind: dispatch.ErrorKind(kind), Error: text})
		}
		p.History = append(p.History, dispatch.AttemptRecord{Duration: time.Duration(duration)})
		stored, err := encodeProgress(&p)
		ok(t, err)
		got, err := decodeProgress(stored)
		if err != nil {
			t.Fatalf("%+v is written %q, which cannot be read: %v", p, stored, err)
		}
		if again, err := encodeProgress(&got); err != nil || again != stored {
			t.Errorf("%+v is written %q, read, and written %q, %v", p, stored, again, err)
		}
		if len(got.History) != len(p.History) || got.Attempts != p.Attempts || got.History[0].Duration < 0 {
			t.Errorf("%+v is read as %+v", p, got)
		}
	})
}

func FuzzEncodeSettings(f *testing.F) {
	f.Add(5.0, 3, -1, int64(time.Hour), int64(time.Second), "dead", int64(1))
	f.Add(0.0, 0, 0, int64(-1), int64(0), "", int64(0))
	f.Add(1e-4, -1, 0, int64(1), int64(-1), "", int64(-7))
	f.Fuzz(func(t *testing.T, rate float64, burst, concurrent int, ttl, backoff int64, letters string, amount int64) {
		q := dispatch.Queue{Rate: rate, Burst: burst, MaxConcurrent: concurrent, TaskTTL: time.Duration(ttl), DeadLetterQueue: letters,
			Secret: letters, NoThrottle: burst%2 == 0, Weight: concurrent,
			Retry: dispatch.RetryConfig{MinBackoff: time.Duration(backoff), Jitter: float64(amount%1e6) / 1e6}}
		if amount != 0 {
			q.Requires = cluster.Resources{"cpu": amount}
		}
		stored, err := encodeSettings(&q)
		ok(t, err)
		got, err := decodeSettings(stored)
		if err != nil {
			t.Fatalf("%+v is written %q, which cannot be read: %v", q, stored, err)
		}
		if again, err := encodeSettings(got); err != nil || again != stored {
			t.Errorf("%+v is written %q, read, and written %q, %v", q, stored, again, err)
		}
		if got.Burst != burst || got.MaxConcurrent != concurrent || got.DeadLetterQueue != letters || got.Requires["cpu"] != amount {
			t.Errorf("%+v is read as %+v", q, got)
		}
	})
}

func FuzzEncodeWorker(f *testing.F) {
	f.Add("host", "mail", 3, "cpu", int64(1), uint8(0xff))
	f.Add("", "", 0, "", int64(0), uint8(4))
	f.Add("\xff", "a b", -1, "\x00", int64(-1), uint8(0))
	f.Fuzz(func(t *testing.T, host, queue string, concurrency int, name string, amount int64, has uint8) {
		w := cluster.Worker{Hostname: host, Concurrency: concurrency}
		for range has & 3 {
			w.Queues = append(w.Queues, queue)
		}
		if has&4 != 0 {
			w.Capacity = cluster.Resources{}
		}
		if has&8 != 0 {
			w.Capacity, w.Metadata = cluster.Resources{name: amount}, map[string]string{name: host}
		}
		stored, err := encodeWorker(&w)
		if err != nil {
			return // larger than may be
		}
		var got cluster.Worker
		ok(t, decodeWorker(stored, &got))
		if again, err := encodeWorker(&got); err != nil || again != stored || (got.Capacity == nil) != (w.Capacity == nil) {
			t.Errorf("%+v is written %q, read as %+v and written %q, %v", w, stored, got, again, err)
		}
	})
}
