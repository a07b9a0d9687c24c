package redisstore

import (
	"encoding/binary"
	"fmt"
)

// maxDepth bounds the nesting of a record. Ours has three levels.
const maxDepth = 32

// scan checks that b is exactly one msgpack value whose declared lengths fit into what is there and whose nesting is
// bounded, so that decoding it cannot allocate more than a small multiple of its size, nor run out of stack. The
// decoder believes every length it reads.
func scan(b string) error {
	rest, err := scanValue(b, 0)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%w: %d bytes after its end", errMalformed, len(rest))
	}
	return err
}

// scanValue checks the value at the start of b and returns what follows it.
func scanValue(b string, depth int) (string, error) {
	if depth > maxDepth {
		return "", fmt.Errorf("%w: nested more than %d deep", errMalformed, maxDepth)
	}
	if len(b) == 0 {
		return "", errShort
	}
	code, b := b[0], b[1:]
	switch {
	case code <= 0x7f, code >= 0xe0, code == 0xc0, code == 0xc2, code == 0xc3: // small integers, nil, booleans
		return b, nil
	case code <= 0x8f:
		return scanItems(b, 2*uint64(code&0x0f), depth)
	case code <= 0x9f:
		return scanItems(b, uint64(code&0x0f), depth)
	case code <= 0xbf:
		return scanBytes(b, uint64(code&0x1f))
	}
	switch code {
	case 0xc4, 0xd9: // bytes and string, length of 1, 2 or 4 bytes
		return scanSized(b, 1)
	case 0xc5, 0xda:
		return scanSized(b, 2)
	case 0xc6, 0xdb:
		return scanSized(b, 4)
	case 0xcc, 0xd0: // numbers of 1, 2, 4 and 8 bytes
		return scanBytes(b, 1)
	case 0xcd, 0xd1:
		return scanBytes(b, 2)
	case 0xca, 0xce, 0xd2:
		return scanBytes(b, 4)
	case 0xcb, 0xcf, 0xd3:
		return scanBytes(b, 8)
	case 0xdc, 0xdd: // arrays
		n, b, err := scanLength(b, 2<<(code-0xdc))
		if err != nil {
			return "", err
		}
		return scanItems(b, n, depth)
	case 0xde, 0xdf: // maps
		n, b, err := scanLength(b, 2<<(code-0xde))
		if err != nil {
			return "", err
		}
		return scanItems(b, 2*n, depth)
	}
	return "", fmt.Errorf("%w: code %#x", errMalformed, code) // extensions are not used
}

var errShort = fmt.Errorf("%w: too short", errMalformed)

// scanLength reads a length of size bytes.
func scanLength(b string, size int) (uint64, string, error) {
	if len(b) < size {
		return 0, "", errShort
	}
	var full [8]byte
	copy(full[8-size:], b[:size])
	return binary.BigEndian.Uint64(full[:]), b[size:], nil
}

func scanSized(b string, size int) (string, error) {
	n, b, err := scanLength(b, size)
	if err != nil {
		return "", err
	}
	return scanBytes(b, n)
}

func scanBytes(b string, n uint64) (string, error) {
	if n > uint64(len(b)) {
		return "", errShort
	}
	return b[n:], nil
}

// scanItems checks n values. Each has at least one byte, so a length that cannot fit is refused before the walk.
func scanItems(b string, n uint64, depth int) (string, error) {
	if n > uint64(len(b)) {
		return "", errShort
	}
	var err error
	for range n {
		if b, err = scanValue(b, depth+1); err != nil {
			return "", err
		}
	}
	return b, nil
}
