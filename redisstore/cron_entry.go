package redisstore

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/dispatchkit/dispatch"
)

// A stored cron entry is a line of text, which scripts read, and a msgpack map, which no script looks into:
//
//	1 <revision> <0, or 1 when paused> <since, ms> <next, ms> <owner, escaped> <spec and zone, escaped>\n<body>
//
// What follows next is its content: scripts compare it byte by byte and copy it. The rules for fields of the body are those
// of records. Since and next are 0 for the zero time.
const entryVersion = "1"

// The fields of an entry's body.
const (
	fieldSpec = 1 + iota
	fieldZone
	fieldMisfire
	fieldTaskQueue
	fieldTask // a record with an empty stamp
)

// encodeEntry encodes the content of an entry. The same entry always gives the same bytes.
func encodeEntry(e *dispatch.EntryInfo) (string, error) {
	record, err := encodeRecord(&dispatch.Submission{Task: e.Task})
	if err != nil {
		return "", err
	}
	w := newWriter()
	w.buf.WriteString(url.QueryEscape(e.Owner))
	w.buf.WriteByte(' ')
	w.buf.WriteString(url.QueryEscape(e.Spec + " " + e.Zone)) // tells whether a change moves the ticks
	w.buf.WriteByte('\n')
	w.mapOf(present(e.Spec != "", e.Zone != "", e.Misfire != "", e.Task.Queue != "", true))
	w.stringField(fieldSpec, e.Spec)
	w.stringField(fieldZone, e.Zone)
	w.stringField(fieldMisfire, string(e.Misfire))
	w.stringField(fieldTaskQueue, e.Task.Queue)
	w.field(fieldTask)
	w.bytes([]byte(record))
	return w.result()
}

// decodeEntry decodes a stored entry. With an error it has all that is in the line of text, and nothing of the body.
func decodeEntry(name, value string) (*dispatch.EntryInfo, error) {
	e := &dispatch.EntryInfo{Entry: dispatch.Entry{Name: name}}
	line, body, _ := strings.Cut(value, "\n")
	words := strings.Split(line, " ")
	if len(words) != 7 || words[0] != entryVersion {
		return e, fmt.Errorf("%w: cron entry %.100s is of an unknown format", errMalformed, name)
	}
	var numbers [4]int64
	var err error
	for i := range numbers {
		if numbers[i], err = strconv.ParseInt(words[i+1], 10, 64); err != nil {
			return e, fmt.Errorf("%w: cron entry %s: %w", errMalformed, name, err)
		}
	}
	e.Revision, e.Paused, e.Since, e.Next = numbers[0], numbers[1] == 1, millis(numbers[2]), millis(numbers[3])
	if e.Owner, err = url.QueryUnescape(words[5]); err != nil {
		return e, fmt.Errorf("%w: cron entry %s: %w", errMalformed, name, err)
	}
	read := e.Entry
	if err := decodeEntryBody(body, &read); err != nil {
		return e, fmt.Errorf("redisstore: cron entry %s: %w", name, err)
	}
	e.Entry = read
	return e, nil
}

func decodeEntryBody(body string, e *dispatch.Entry) error {
	var queue, record string
	err := readMap(body, func(r *reader, field uint64) {
		switch field {
		case fieldSpec:
			e.Spec = r.string()
		case fieldZone:
			e.Zone = r.string()
		case fieldMisfire:
			e.Misfire = dispatch.Misfire(r.string())
		case fieldTaskQueue:
			queue = r.string()
		case fieldTask:
			record = string(r.bytes())
		default:
			r.skip()
		}
	})
	if err != nil {
		return err
	}
	var named bool
	err = decodeRecord(emptyStamp+record, &e.Task, &named)
	e.Task.Queue = queue
	return err
}

// emptyStamp stands before the record of a task that is not stored as one.
var emptyStamp = string(rune(recordVersion)) + strings.Repeat("\x00", stampBytes-1)
