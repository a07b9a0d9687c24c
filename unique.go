package dispatch

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"hash"
	"time"
)

// Unique makes a task's ID from what it does, so that the same work is not stored twice: a second one is refused with
// ErrDuplicateTask, and its ID is that of the first. In a queue two tasks are the same whose Key is, or, if they have none,
// whose Kind, or Method and URL, and Payload are; Header, Metadata, times and retries do not matter.
//
// The ID is taken while the task is live, however long it waits or runs, and while it is retained. Window is about the time
// after that. An edit of the task leaves its ID as it is.
type Unique struct {
	// Key stands for the work; empty means Kind, or Method and URL, and Payload. At most 1 KiB.
	Key string
	// Window is how long the ID stays taken after the task has ended, to the millisecond; 0 means as any name, see
	// Options.DedupWindow, and negative not at all.
	Window time.Duration
}

const maxUniqueKey = 1 << 10 // bytes

func (u *Unique) validate(id TaskID) error {
	switch {
	case id != "":
		return fieldErrorf("Task.Unique", "makes the ID, and the task has one")
	case len(u.Key) > maxUniqueKey:
		return fieldErrorf("Task.Unique.Key", "has %d bytes, more than %d", len(u.Key), maxUniqueKey)
	case u.Window > maxSchedule:
		return fieldErrorf("Task.Unique.Window", "%v is more than %v", u.Window, maxSchedule)
	case u.Window > 0 && u.Window < time.Millisecond:
		return fieldErrorf("Task.Unique.Window", "%v is less than a millisecond", u.Window)
	}
	return nil
}

// uniqueID is the ID of a normalized task with a Unique. The prefix tells it from names that users choose, and the first
// word from what else is hashed to an ID.
func uniqueID(t *Task) TaskID {
	if t.Unique.Key != "" {
		return hashedID("u-", "key", t.Unique.Key)
	}
	return hashedID("u-", "content", t.Kind, t.Method, t.URL, string(t.Payload))
}

// derivedID hashes words, each with its length before it, to an ID of 43 characters behind a prefix.
func hashedID(prefix string, words ...string) TaskID {
	h := sha256.New()
	for _, word := range words {
		hashWord(h, word)
	}
	return TaskID(prefix + base64.RawURLEncoding.EncodeToString(h.Sum(nil)))
}

func hashWord(h hash.Hash, word string) {
	var length [8]byte
	binary.BigEndian.PutUint64(length[:], uint64(len(word)))
	h.Write(length[:])
	h.Write([]byte(word))
}
