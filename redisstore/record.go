package redisstore

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/dispatchkit/dispatch"
)

// A stored record is a header of fixed length, which scripts read with string.byte, and a msgpack map, which no script
// looks into:
//
//	1     format version
//	2-5   generation of the queue: rises with every purge         written by enqueue.lua and replay.lua
//	6-11  created, or replayed, ms                                written by enqueue.lua and replay.lua
//	12    flags: bit 0 = named, bit 1 = derived, bit 2 = with requirements, bit 3 = with a dedup window of its own
//	13-16 timeout, ms
//	-     with a dedup window: ms (5); then
//	-     with requirements: their length (2), and they as text, as in requires.go; then
//	-     body: map of field number to value
//
// Numbers are big-endian. A field of the body keeps its number and its meaning for good; new fields get new numbers, and
// a reader skips numbers that it does not know. Zero values are left out.
const (
	recordVersion = 1
	stampBytes    = 11 // what the script writes
	headerBytes   = 16
	flagNamed     = 1
	flagDerived   = 2
	flagRequires  = 4
	flagWindow    = 8
	windowBytes   = 5
)

// The fields of a record's body.
const (
	fieldKind = 1 + iota
	fieldURL
	fieldMethod
	fieldHeader
	fieldPayload
	fieldRetry
	fieldMetadata
	fieldNonce // of named tasks: tells a repeated call from another one
	fieldSecret
	fieldRetention // ms; below 0 is none
)

// encodeRecord encodes what follows the stamp. The same submission always gives the same bytes: the script compares them.
func encodeRecord(sub *dispatch.Submission) (string, error) {
	t := &sub.Task
	w := newWriter()
	head := [headerBytes - stampBytes]byte{}
	if sub.Named {
		head[0] |= flagNamed
	}
	if sub.Derived {
		head[0] |= flagDerived
	}
	if len(t.Requires) > 0 {
		head[0] |= flagRequires
	}
	if sub.Window != 0 {
		head[0] |= flagWindow
	}
	binary.BigEndian.PutUint32(head[1:], uint32(t.Timeout.Milliseconds()))
	w.buf.Write(head[:])
	if sub.Window != 0 {
		w.buf.Write(binary.BigEndian.AppendUint64(nil, uint64(ms(max(sub.Window, 0))))[8-windowBytes:])
	}
	if len(t.Requires) > 0 {
		requires := formatResources(t.Requires)
		w.buf.Write(binary.BigEndian.AppendUint16(nil, uint16(len(requires))))
		w.buf.WriteString(requires)
	}

	retention := t.Retention.Milliseconds()
	w.mapOf(present(t.Kind != "", t.URL != "", t.Method != "", len(t.Header) > 0, len(t.Payload) > 0, t.Retry != nil,
		len(t.Metadata) > 0, sub.Named || sub.Nonce != 0, t.Secret != "", retention != 0))
	w.stringField(fieldKind, t.Kind)
	w.stringField(fieldURL, t.URL)
	w.stringField(fieldMethod, t.Method)
	if len(t.Header) > 0 {
		w.field(fieldHeader)
		w.mapOf(len(t.Header))
		for _, name := range slices.Sorted(maps.Keys(t.Header)) {
			w.string(name)
			w.arrayOf(len(t.Header[name]))
			for _, v := range t.Header[name] {
				w.string(v)
			}
		}
	}
	if len(t.Payload) > 0 {
		w.field(fieldPayload)
		w.bytes(t.Payload)
	}
	if t.Retry != nil {
		w.field(fieldRetry)
		w.retry(t.Retry)
	}
	if len(t.Metadata) > 0 {
		w.field(fieldMetadata)
		w.mapOf(len(t.Metadata))
		for _, name := range slices.Sorted(maps.Keys(t.Metadata)) {
			w.string(name)
			w.string(t.Metadata[name])
		}
	}
	if sub.Named || sub.Nonce != 0 { // one that was replayed under another ID has it still
		w.field(fieldNonce)
		w.uint(sub.Nonce)
	}
	w.stringField(fieldSecret, t.Secret)
	w.intField(fieldRetention, retention)
	return w.result()
}

// decodeRecord decodes a stored record into a task.
func decodeRecord(record string, t *dispatch.Task, named *bool) error {
	var sub dispatch.Submission
	err := decodeSubmission(record, &sub)
	*t, *named = sub.Task, sub.Named
	return err
}

// decodeSubmission decodes a stored record into what encodeRecord made it of.
func decodeSubmission(record string, sub *dispatch.Submission) error {
	t := &sub.Task
	if len(record) < headerBytes {
		return fmt.Errorf("redisstore: record of %d bytes", len(record))
	}
	if v := record[0]; v != recordVersion {
		return fmt.Errorf("redisstore: record has format %d; this program knows %d", v, recordVersion)
	}
	sub.Named, sub.Derived, sub.Window = record[stampBytes]&flagNamed != 0, recordDerived(record), recordWindow(record)
	t.Timeout = time.Duration(binary.BigEndian.Uint32([]byte(record[12:16]))) * time.Millisecond
	body := record[headerBytes:]
	if record[stampBytes]&flagWindow != 0 {
		if len(body) < windowBytes {
			return errMalformed
		}
		body = body[windowBytes:]
	}
	if record[stampBytes]&flagRequires != 0 {
		if len(body) < 2 {
			return errMalformed
		}
		length := int(binary.BigEndian.Uint16([]byte(body)))
		if body = body[2:]; len(body) < length {
			return errMalformed
		}
		t.Requires = parseResources(body[:length])
		body = body[length:]
	}
	return readMap(body, func(r *reader, field uint64) {
		switch field {
		case fieldKind:
			t.Kind = r.string()
		case fieldURL:
			t.URL = r.string()
		case fieldMethod:
			t.Method = r.string()
		case fieldHeader:
			t.Header = make(http.Header)
			for range r.mapLen() {
				name := r.string()
				t.Header[name] = nil // a name without values has a meaning for net/http
				for range r.arrayLen() {
					t.Header[name] = append(t.Header[name], r.string())
				}
			}
		case fieldPayload:
			t.Payload = r.bytes()
		case fieldRetry:
			t.Retry = new(dispatch.RetryConfig)
			r.retry(t.Retry)
		case fieldSecret:
			t.Secret = r.string()
		case fieldRetention:
			t.Retention = r.millis()
		case fieldMetadata:
			t.Metadata = make(map[string]string)
			for range r.mapLen() {
				name := r.string()
				t.Metadata[name] = r.string()
			}
		case fieldNonce:
			sub.Nonce = r.uint()
		default:
			r.skip()
		}
	})
}

// recordCreated is when a record was stored.
func recordCreated(record string) time.Time {
	if len(record) < stampBytes {
		return time.Time{}
	}
	var full [8]byte
	copy(full[2:], record[5:11])
	return millis(int64(binary.BigEndian.Uint64(full[:])))
}

// recordDerived says whether the ID of a record was derived: see dispatch.Submission.
func recordDerived(record string) bool {
	return len(record) > stampBytes && record[stampBytes]&flagDerived != 0
}

// recordWindow is the dedup window of a record, as in dispatch.Submission.
func recordWindow(record string) time.Duration {
	if len(record) < headerBytes+windowBytes || record[stampBytes]&flagWindow == 0 {
		return 0
	}
	own := append([]byte{0, 0, 0}, record[headerBytes:headerBytes+windowBytes]...)
	if n := binary.BigEndian.Uint64(own); n > 0 {
		return wait(int64(n))
	}
	return -1
}

// derivedTombstone is how long the name of a task with a derived ID stays taken at least. lib_record.lua has it too.
const derivedTombstone = time.Hour

func present(fields ...bool) int {
	n := 0
	for _, f := range fields {
		if f {
			n++
		}
	}
	return n
}

// retry writes a RetryConfig as an array of integers: times in ns, the jitter in millionths.
func (w *writer) retry(rc *dispatch.RetryConfig) {
	values := []int64{int64(rc.MaxAttempts), int64(rc.MaxRetryDuration), int64(rc.MinBackoff),
		int64(rc.MaxBackoff), int64(rc.MaxDoublings)}
	if rc.Jitter != 0 {
		values = append(values, int64(math.Round(rc.Jitter*1e6)))
	}
	w.arrayOf(len(values))
	for _, v := range values {
		w.int(v)
	}
}

// retry reads what the writer's retry wrote, and skips what later versions may have added.
func (r *reader) retry(rc *dispatch.RetryConfig) {
	n := r.arrayLen()
	for i := range n {
		switch i {
		case 0:
			rc.MaxAttempts = int(r.int())
		case 1:
			rc.MaxRetryDuration = time.Duration(r.int())
		case 2:
			rc.MinBackoff = time.Duration(r.int())
		case 3:
			rc.MaxBackoff = time.Duration(r.int())
		case 4:
			rc.MaxDoublings = int(r.int())
		case 5:
			rc.Jitter = float64(r.int()) / 1e6
		default:
			r.skip()
		}
	}
}
