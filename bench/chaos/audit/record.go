package audit

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strconv"

	"github.com/vmihailenco/msgpack/v5"
)

// formatVersion is that of the records and of the progress that this package can read.
const formatVersion = 1

// purged says whether a record is from before the last purge of its queue: its generation, four bytes behind the version, is
// below that of the queue.
func purged(record, generation string) bool {
	if len(record) < 5 || record[0] != formatVersion {
		return false
	}
	current, _ := strconv.ParseUint(generation, 10, 32)
	return uint64(binary.BigEndian.Uint32([]byte(record[1:5]))) < current
}

// progress is what is kept of the attempts at a task.
type progress struct {
	attempts int
	token    int64 // of the last one that was made
	result   []byte
}

// The numbers of the fields that are read: of progress, and of an attempt in its history.
const (
	fieldHistory = 3
	fieldResult  = 6

	fieldToken     = 5
	fieldErrorKind = 7
)

// shed is the error kind of an attempt that was not made.
const shed = "shed"

// readProgress reads a value of the state hash: version, attempts in four bytes, and a msgpack map of numbered fields.
func readProgress(text string) (progress, error) {
	if len(text) < 5 || text[0] != formatVersion {
		return progress{}, errors.New("a format that is not known")
	}
	p := progress{attempts: int(binary.BigEndian.Uint32([]byte(text[1:5])))}
	dec := msgpack.NewDecoder(bytes.NewReader([]byte(text[5:])))
	dec.UseLooseInterfaceDecoding(true) // numbers are int64 or uint64, whatever their length
	dec.SetMapDecoder(func(d *msgpack.Decoder) (any, error) { return d.DecodeUntypedMap() })
	fields, err := dec.DecodeUntypedMap()
	if err != nil {
		return p, err
	}
	for field, value := range fields {
		switch number(field) {
		case fieldResult:
			result, _ := value.(string)
			p.result = []byte(result)
		case fieldHistory:
			history, _ := value.([]any)
			for _, attempt := range history {
				if token, made := attemptToken(attempt); made {
					p.token = token // they are in order
				}
			}
		}
	}
	return p, nil
}

// attemptToken is the token of an attempt in a history, and whether it was made.
func attemptToken(attempt any) (token int64, made bool) {
	fields, _ := attempt.(map[any]any)
	made = true
	for field, value := range fields {
		switch number(field) {
		case fieldToken:
			token = number(value)
		case fieldErrorKind:
			made = value != shed
		}
	}
	return token, made
}

// number is a decoded number; 0 if it is none.
func number(v any) int64 {
	switch n := v.(type) {
	case int64:
		return n
	case uint64:
		return int64(n)
	}
	return 0
}
