package audit

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestLedger(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	before := time.Now().UnixMicro()
	all := Event{
		Kind: KindStart, At: 5, Who: "w", Queue: "q", ID: "a", NotBefore: 1, Named: true, Result: EndOK, Attempt: 2, Token: 1 << 60,
		Outcome: OutcomeDead, Lease: 3, Worker: "v", Fault: FaultReplay, Target: "w", Text: "<\n",
	}
	for _, who := range []string{"a", "b"} {
		l := open(t, dir, who)
		var writers sync.WaitGroup
		for range 4 {
			writers.Go(func() {
				for range 50 {
					l.Append(Event{Kind: KindNote})
				}
			})
		}
		writers.Wait()
		l.Append(all)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		l.Append(all) // dropped
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	h, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(h.Events) != 402 || !reflect.DeepEqual(h.Events[0], all) || !reflect.DeepEqual(h.Events[1], all) {
		t.Fatalf("%d events, the first %+v", len(h.Events), h.Events[0])
	}
	last := before
	for _, e := range h.Events[2:] {
		if e.At < last || e.At > time.Now().UnixMicro() || e.Who != "a" && e.Who != "b" {
			t.Fatalf("%+v after %d", e, last)
		}
		last = e.At
	}
}

// TestTorn: what a killed process leaves is ignored, and is not in the way of the next one of that name.
func TestTorn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "w"+suffix)
	const line = `{"kind":"note","at":1,"who":"w"}` + "\n"
	for _, torn := range []string{"", `{`, `{"kind":"note","at":1`, `{"kind":"note","at":1,"who":"w"}`} {
		write(t, file, line+torn)
		if h, err := Read(dir); err != nil || len(h.Events) != 1 {
			t.Fatalf("%q: %v, %v", torn, h, err)
		}
		l := open(t, dir, "w")
		l.Append(Event{Kind: KindNote})
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if h, err := Read(dir); err != nil || len(h.Events) != 2 {
			t.Fatalf("%q: %v, %v", torn, h, err)
		}
	}
	write(t, file, "torn from its first line")
	l := open(t, dir, "w")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if h, err := Read(dir); err != nil || len(h.Events) != 0 {
		t.Fatal(h, err)
	}
}

// TestBadLines: a line that is not understood is an error, wherever it stands, but for half of one at the end.
func TestBadLines(t *testing.T) {
	t.Parallel()
	const good = `{"kind":"note","at":1,"who":"w"}` + "\n"
	for _, bad := range []string{
		"", "x", "{}", `{"kind":"note","at":1,"who":"w","colour":1}`, `{"kind":"note","who":"w"}`, `{"kind":"note","at":1}`,
		`{"kind":"guess","at":1,"who":"w"}`, `{"kind":"fault","at":1,"who":"w"}`, `{"kind":"start","at":1,"who":"w","queue":"q","token":1}`,
		`{"kind":"start","at":1,"who":"w","queue":"q","id":"a"}`, `{"kind":"end","at":1,"who":"w","id":"a","token":1}`,
		`{"kind":"ack","at":1,"who":"w","queue":"q","result":"stored"}`, `{"kind":"outcome","at":1,"who":"w","queue":"q","token":1}`,
		strings.TrimSpace(good) + good,
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "w"+suffix), good+bad+"\n"+good)
		if _, err := Read(dir); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, who := range []string{"", "*", "a/b", `a\b`, ".a", ".."} {
		if l, err := Open(dir, who); err == nil {
			l.Close()
			t.Errorf("%q was opened", who)
		}
	}
	if _, err := Open(filepath.Join(dir, "no"), "w"); err == nil {
		t.Error("a directory that is not there")
	}
}

// TestFull: what could not be written is told when the log is closed.
func TestFull(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full here")
	}
	l := &Log{who: "w", file: full}
	l.Append(Event{Kind: KindNote})
	if err := l.Close(); err == nil {
		t.Error("no error")
	}
}

func open(t *testing.T, dir, who string) *Log {
	t.Helper()
	l, err := Open(dir, who)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
