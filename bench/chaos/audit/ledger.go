package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// suffix is how the files of a ledger end.
const suffix = ".jsonl"

// Log appends events to the file of one process. Each event is one write, without a buffer in between, so what Append has
// returned from survives SIGKILL. Its methods may be called by several goroutines.
type Log struct {
	who  string
	mu   sync.Mutex
	file *os.File
	err  error // the first that a write has met
}

// Open opens the file of who in dir, which exists, to append to it. No other process may write under that name at the same
// time; one that was killed may have left half a line, which Open removes.
func Open(dir, who string) (*Log, error) {
	if who == "" || who == AnyWorker || strings.ContainsAny(who, `/\`) || strings.HasPrefix(who, ".") {
		return nil, fmt.Errorf("audit: %q cannot be the name of a file", who)
	}
	file, err := os.OpenFile(filepath.Join(dir, who+suffix), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	if err := cutTorn(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &Log{who: who, file: file}, nil
}

// cutTorn removes what stands behind the last line end.
func cutTorn(file *os.File) error {
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	last := make([]byte, 1)
	for end := size; ; end-- {
		if end > 0 {
			if _, err := file.ReadAt(last, end-1); err != nil {
				return err
			}
		}
		if end == 0 || last[0] == '\n' {
			if end == size {
				return nil
			}
			return file.Truncate(end)
		}
	}
}

// Append writes an event. It fills in At and Who where they are zero. The first error is kept for Close; the events after it
// are still tried, because the more of a ledger there is the better.
func (l *Log) Append(e Event) {
	if e.Who == "" {
		e.Who = l.who
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.At == 0 {
		e.At = time.Now().UnixMicro() // under the lock: the lines of a file are in order
	}
	line, err := json.Marshal(e)
	if err == nil {
		_, err = l.file.Write(append(line, '\n'))
	}
	if l.err == nil && !errors.Is(err, fs.ErrClosed) {
		l.err = err
	}
}

// Close closes the file and returns the first error that an Append has met. What is appended after it is dropped: a run that
// is over does not care.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.file.Close()
	if errors.Is(err, fs.ErrClosed) {
		err = nil
	}
	return errors.Join(l.err, err)
}
