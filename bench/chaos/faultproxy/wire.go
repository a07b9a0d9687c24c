package faultproxy

import (
	"bytes"
	"errors"
)

// What is longer than this is not RESP, or not ours.
const (
	maxLine = 1 << 20   // bytes of a line: a status, an error, a number
	maxSize = 512 << 20 // bytes of a string, elements of an array
)

// errNotRESP ends a connection: after it nobody knows where the next reply begins.
var errNotRESP = errors.New("faultproxy: not RESP")

// line is the first line of b without its end, and its length with it, which is 0 while the line is not whole.
func line(b []byte) (text []byte, n int, err error) {
	end := bytes.IndexByte(b, '\n')
	if end > maxLine || end < 0 && len(b) > maxLine {
		return nil, 0, errNotRESP
	}
	if end < 0 {
		return nil, 0, nil
	}
	return bytes.TrimSuffix(b[:end], []byte{'\r'}), end + 1, nil
}

// bulk is the string of that size at the beginning of b, and its length with the line end behind it, which is 0 while
// it is not whole.
func bulk(b []byte, size int) (text []byte, n int, err error) {
	if len(b) < size+2 {
		return nil, 0, nil
	}
	if b[size] != '\r' || b[size+1] != '\n' {
		return nil, 0, errNotRESP
	}
	return b[:size], size + 2, nil
}

// count is the number in the head of a string or an aggregate: -1, which is nil, or more.
func count(text []byte) (int, error) {
	if string(text) == "-1" {
		return -1, nil
	}
	if len(text) == 0 {
		return 0, errNotRESP
	}
	n := 0
	for _, digit := range text {
		if digit < '0' || digit > '9' {
			return 0, errNotRESP
		}
		if n = n*10 + int(digit-'0'); n > maxSize {
			return 0, errNotRESP
		}
	}
	return n, nil
}
