package redisstore

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/vmihailenco/msgpack/v5"
)

// writer encodes msgpack. The first error sticks; a bytes.Buffer gives none.
type writer struct {
	buf bytes.Buffer
	enc *msgpack.Encoder
	err error
}

// keptBytes is the longest buffer that is kept for the next record.
const keptBytes = 64 << 10

// Encoders and decoders are several objects each, and a record needs one for a moment.
var (
	writers = sync.Pool{New: func() any {
		w := new(writer)
		w.enc = msgpack.NewEncoder(&w.buf)
		return w
	}}
	readers = sync.Pool{New: func() any {
		r := new(reader)
		r.dec = msgpack.NewDecoder(&r.text)
		return r
	}}
)

// newWriter returns a writer that result ends.
func newWriter() *writer { return writers.Get().(*writer) }

func (w *writer) keep(err error) {
	if w.err == nil {
		w.err = err
	}
}

func (w *writer) mapOf(n int)     { w.keep(w.enc.EncodeMapLen(n)) }
func (w *writer) arrayOf(n int)   { w.keep(w.enc.EncodeArrayLen(n)) }
func (w *writer) field(n uint64)  { w.keep(w.enc.EncodeUint(n)) }
func (w *writer) uint(v uint64)   { w.keep(w.enc.EncodeUint(v)) }
func (w *writer) int(v int64)     { w.keep(w.enc.EncodeInt(v)) }
func (w *writer) float(v float64) { w.keep(w.enc.EncodeFloat64(v)) }
func (w *writer) string(s string) { w.keep(w.enc.EncodeString(s)) }
func (w *writer) bytes(b []byte)  { w.keep(w.enc.EncodeBytes(b)) }

// stringField and intField leave zero values out.
func (w *writer) stringField(n uint64, s string) {
	if s != "" {
		w.field(n)
		w.string(s)
	}
}

func (w *writer) intField(n uint64, v int64) {
	if v != 0 {
		w.field(n)
		w.int(v)
	}
}

// result is what was written. The writer is not used any more.
func (w *writer) result() (string, error) {
	text, err := w.buf.String(), w.err
	w.buf.Reset()
	w.err = nil
	if w.buf.Cap() <= keptBytes {
		writers.Put(w)
	}
	if err != nil {
		return "", fmt.Errorf("redisstore: encode: %w", err)
	}
	return text, nil
}

// reader decodes msgpack that scan has found well-formed. The first error sticks, and then every read is zero.
type reader struct {
	text strings.Reader
	dec  *msgpack.Decoder
	err  error
}

// readMap decodes a map of field numbers, calling read for each field, which reads or skips exactly one value.
func readMap(text string, read func(r *reader, field uint64)) error {
	if err := scan(text); err != nil {
		return err
	}
	r := readers.Get().(*reader)
	r.text.Reset(text)
	r.dec.Reset(&r.text)
	r.err = nil
	r.fields(read)
	err := r.err
	if r.text.Reset(""); len(text) <= keptBytes { // a decoder keeps a buffer as long as the longest string
		readers.Put(r)
	}
	return err
}

// fields reads one map.
func (r *reader) fields(read func(r *reader, field uint64)) {
	for range r.mapLen() {
		field, err := r.dec.DecodeUint64()
		r.keep(err)
		if r.err != nil {
			return
		}
		read(r, field)
	}
}

var errMalformed = errors.New("redisstore: malformed record")

func (r *reader) keep(err error) {
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("%w: %w", errMalformed, err)
	}
}

func (r *reader) skip() {
	if r.err == nil {
		r.keep(r.dec.Skip())
	}
}

func (r *reader) string() string {
	if r.err != nil {
		return ""
	}
	s, err := r.dec.DecodeString()
	r.keep(err)
	return s
}

func (r *reader) bytes() []byte {
	if r.err != nil {
		return nil
	}
	b, err := r.dec.DecodeBytes()
	r.keep(err)
	return b
}

func (r *reader) int() int64 {
	if r.err != nil {
		return 0
	}
	v, err := r.dec.DecodeInt64()
	r.keep(err)
	return v
}

// millis reads a duration in ms.
func (r *reader) millis() time.Duration {
	n := r.int()
	d := time.Duration(n) * time.Millisecond
	if d.Milliseconds() != n {
		r.keep(fmt.Errorf("a duration of %d ms", n))
		return 0
	}
	return d
}

func (r *reader) uint() uint64 {
	if r.err != nil {
		return 0
	}
	v, err := r.dec.DecodeUint64()
	r.keep(err)
	return v
}

func (r *reader) float() float64 {
	if r.err != nil {
		return 0
	}
	v, err := r.dec.DecodeFloat64()
	r.keep(err)
	return v
}

func (r *reader) mapLen() int {
	if r.err != nil {
		return 0
	}
	n, err := r.dec.DecodeMapLen()
	r.keep(err)
	return max(n, 0) // -1 is nil
}

func (r *reader) arrayLen() int {
	if r.err != nil {
		return 0
	}
	n, err := r.dec.DecodeArrayLen()
	r.keep(err)
	return max(n, 0)
}
