package faultproxy

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"strings"
)

// Request is one command as a client sent it.
type Request struct {
	// Name is the command in capitals, without its subcommand.
	Name string

	// Args are all parts, the name as it was sent among them. They are valid during the call that they are given to.
	Args [][]byte

	// SHA is the hash of the script, in lower case, of EVALSHA and of EVAL alike: a client that is told NOSCRIPT sends
	// the same script again by EVAL. It is empty for other commands.
	SHA string
}

// newRequest describes a command of at least one part.
func newRequest(args [][]byte) Request {
	r := Request{Name: strings.ToUpper(string(args[0])), Args: args}
	if len(args) < 2 {
		return r
	}
	switch r.Name {
	case "EVALSHA", "EVALSHA_RO":
		r.SHA = strings.ToLower(string(args[1]))
	case "EVAL", "EVAL_RO":
		sum := sha1.Sum(args[1])
		r.SHA = hex.EncodeToString(sum[:])
	}
	return r
}

// ofReplica says whether the request shows that a replica has connected.
func (r Request) ofReplica() bool {
	return r.Name == "REPLCONF" || r.Name == "PSYNC" || r.Name == "SYNC"
}

// scanRequest finds the parts of the first request in b and its length, which is 0 while the request is not whole. A
// request without parts, such as an empty line, is not answered. The parts are appended to args and lie within b.
func scanRequest(b []byte, args [][]byte) (parts [][]byte, n int, err error) {
	head, n, err := line(b)
	if n == 0 {
		return nil, 0, err
	}
	if len(head) == 0 || head[0] != '*' {
		return append(args, bytes.Fields(head)...), n, nil // typed by hand, as Redis also understands it
	}
	left, err := count(head[1:])
	if err != nil {
		return nil, 0, err
	}
	for range left {
		head, m, err := line(b[n:])
		if m == 0 {
			return nil, 0, err
		}
		if len(head) == 0 || head[0] != '$' {
			return nil, 0, errNotRESP
		}
		size, err := count(head[1:])
		if size < 0 || err != nil {
			return nil, 0, errNotRESP
		}
		n += m
		part, m, err := bulk(b[n:], size)
		if m == 0 {
			return nil, 0, err
		}
		args = append(args, part)
		n += m
	}
	return args, n, nil
}
