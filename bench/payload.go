package main

import (
	"bytes"
	"fmt"
	"strconv"
	"time"
)

const payloadBytes = 128

// payload is what every task of every contestant carries: a JSON document, because some of them store nothing else.
var payload = newPayload()

// stampAt is where stamped writes: in the string of the document, 19 digits.
const stampAt, stampDigits = len(`{"data":"`), 19

func newPayload() []byte {
	const head, tail = `{"data":"`, `"}`
	return []byte(head + string(bytes.Repeat([]byte{'x'}, payloadBytes-len(head)-len(tail))) + tail)
}

// stamped is a payload of the same size that carries an instant.
func stamped(t time.Time) []byte {
	p := bytes.Clone(payload)
	copy(p[stampAt:], fmt.Sprintf("%0*d", stampDigits, t.UnixNano()))
	return p
}

// stampOf is the instant that stamped has put into a payload.
func stampOf(p []byte) (time.Time, error) {
	if len(p) != payloadBytes {
		return time.Time{}, fmt.Errorf("payload has %d bytes, want %d", len(p), payloadBytes)
	}
	ns, err := strconv.ParseInt(string(p[stampAt:stampAt+stampDigits]), 10, 64)
	return time.Unix(0, ns), err
}
