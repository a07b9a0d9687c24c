package audit

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// History is what all processes of a run have written.
type History struct {
	// Events are in the order of their times.
	Events []Event
}

// Read reads the ledger in dir. Half a line at the end of a file is what a killed process leaves, and ignored; any other line
// that cannot be read is an error, because a checker that skips what it does not understand finds nothing.
func Read(dir string) (*History, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if err != nil {
		return nil, err
	}
	h := new(History)
	for _, name := range files {
		if err := h.readFile(name); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(h.Events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	return h, nil
}

// ReadOf reads what one process has written.
func ReadOf(dir, who string) (*History, error) {
	h := new(History)
	return h, h.readFile(filepath.Join(dir, who+suffix))
}

func (h *History) readFile(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	in := bufio.NewReaderSize(file, 1<<16)
	for number := 1; ; number++ {
		line, err := in.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF):
			return nil // with what is left of a line, if anything
		case err != nil:
			return err
		}
		e, err := parse(line)
		if err != nil {
			return fmt.Errorf("audit: %s, line %d: %w", name, number, err)
		}
		h.Events = append(h.Events, e)
	}
}

// parse reads one line.
func parse(line []byte) (Event, error) {
	var e Event
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&e); err != nil {
		return e, err
	}
	if dec.More() {
		return e, errors.New("more than one event")
	}
	return e, e.validate()
}

// validate says what keeps an event from being one.
func (e *Event) validate() error {
	switch e.Kind {
	case KindAsk, KindNote:
	case KindFault:
		if e.Fault == "" {
			return errors.New("a fault without a word for it")
		}
	case KindAck, KindStart, KindEnd, KindOutcome:
		if e.Queue == "" || e.ID == "" && !e.mayBeNameless() {
			return fmt.Errorf("%s of no task", e.Kind)
		}
		if e.Token <= 0 && (e.Kind == KindStart || e.Kind == KindEnd) {
			return fmt.Errorf("%s without a token", e.Kind)
		}
	default:
		return fmt.Errorf("kind %q", e.Kind)
	}
	if e.At <= 0 || e.Who == "" {
		return fmt.Errorf("%s of nobody, or at no time", e.Kind)
	}
	return nil
}

// mayBeNameless says whether an event may be about no task in particular: an enqueue whose ID nobody has learned, and the end
// by administration of all tasks of a queue.
func (e *Event) mayBeNameless() bool {
	return e.Kind == KindAck && e.Result != AckStored || e.Kind == KindOutcome && e.Token == 0
}
