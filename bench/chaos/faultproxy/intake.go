package faultproxy

import (
	"io"
	"slices"
)

// intake collects what arrives on one side of a connection until whole requests or replies can be taken from it.
type intake struct {
	from io.Reader
	buf  []byte
	used int // of buf: what has been taken
}

const chunk = 16 << 10 // bytes, the least that is asked for at once

// more waits for the next bytes. What was taken before is no longer valid.
func (in *intake) more() error {
	in.buf = in.buf[:copy(in.buf, in.buf[in.used:])]
	in.used = 0
	if cap(in.buf)-len(in.buf) < chunk {
		in.buf = slices.Grow(in.buf, max(chunk, len(in.buf))) // doubled: a long reply is looked through at every chunk
	}
	n, err := in.from.Read(in.buf[len(in.buf):cap(in.buf)])
	in.buf = in.buf[:len(in.buf)+n]
	if n > 0 {
		return nil // an error comes back at the next call
	}
	return err
}

// rest is what has arrived and has not been taken.
func (in *intake) rest() []byte { return in.buf[in.used:] }

// take takes the first n bytes of rest.
func (in *intake) take(n int) []byte {
	taken := in.rest()[:n]
	in.used += n
	return taken
}

// all takes what there is.
func (in *intake) all() []byte { return in.take(len(in.rest())) }
