package redisstore

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/internal/redistest"
)

func cronEntry(name, spec string) *dispatch.EntryInfo {
	return &dispatch.EntryInfo{Entry: dispatch.Entry{Name: name, Spec: spec, Task: dispatch.Task{Queue: mail, Kind: "test"}}}
}

func advanceOf(e *dispatch.EntryInfo) dispatch.EntryAdvance {
	return dispatch.EntryAdvance{Name: e.Name, Revision: e.Revision, Since: e.Since.Add(time.Second), Next: e.Since.Add(time.Hour)}
}

// workOnCron calls every method for cron entries.
func workOnCron(t testing.TB, s *testStore) {
	t.Helper()
	ctx := t.Context()
	ok(t, s.PutEntry(ctx, cronEntry("a", "@daily")))
	ok(t, s.PauseEntry(ctx, "a", true))
	ok(t, s.PauseEntry(ctx, "a", false))
	due, _, _, err := s.DueEntries(ctx, 0, 10)
	if err != nil || len(due) != 1 {
		t.Fatalf("due: %v, %v", due, err)
	}
	if moved, err := s.AdvanceEntry(ctx, advanceOf(due[0])); err != nil || !moved {
		t.Fatalf("advanced: %v, %v", moved, err)
	}
	if all, _, err := s.Entries(ctx, 0); err != nil || len(all) != 1 {
		t.Fatalf("entries: %v, %v", all, err)
	}
	e, err := s.Entry(ctx, "a")
	ok(t, err)
	ok(t, s.DeleteEntry(ctx, "a", e.Revision))
}

// fullEntry has every field that an entry keeps.
func fullEntry() dispatch.EntryInfo {
	return dispatch.EntryInfo{
		Entry: dispatch.Entry{Name: "a", Spec: "@daily", Zone: "Asia/Tokyo", Misfire: dispatch.MisfireSkip, Task: dispatch.Task{
			Queue: "mail", URL: "https://a.example/", Method: "PUT", Header: http.Header{"X-A": {"1"}}, Payload: []byte("p\n"),
			Timeout: 90 * time.Second}},
		Owner: "team b\n", Paused: true, Revision: 1772366400124, Since: epoch, Next: epoch.Add(time.Second),
	}
}

// goldenEntry is fullEntry as version 1 has written it. It must stay readable for good: it is what servers hold.
const (
	goldenEntryLine = "1 1772366400124 1 1772366400123 1772366401123 team+b%0A %40daily+Asia%2FTokyo\n"
	goldenEntryBody = `
		85
		01 a6 406461696c79
		02 aa 417369612f546f6b796f
		03 a4 736b6970
		04 a4 6d61696c
		05 c4 2d  00 00015f90
		   84
		   02 b2 68747470733a2f2f612e6578616d706c652f
		   03 a3 505554
		   04 81 a3 582d41 91 a1 31
		   05 c4 02 700a`
)

func TestGoldenEntry(t *testing.T) {
	t.Parallel()
	want := fullEntry()
	golden := goldenEntryLine + unhex(t, goldenEntryBody)
	content, err := encodeEntry(&want)
	ok(t, err)
	if got := hex.EncodeToString([]byte(content)); !strings.HasSuffix(hex.EncodeToString([]byte(golden)), got) {
		t.Errorf("encoded\n got %s\nwant the end of %x", got, golden)
	}
	got, err := decodeEntry("a", golden)
	ok(t, err)
	if !reflect.DeepEqual(*got, want) {
		t.Errorf("decoded\n got %+v\nwant %+v", *got, want)
	}
	// With fields of a later version.
	got, err = decodeEntry("a", "1 5 0 7 0  x+\n"+unhex(t, `83 63 91 c0 01 a1 78 05 c4 06 00 000003e8 80`))
	ok(t, err)
	if want := (dispatch.EntryInfo{Entry: dispatch.Entry{Name: "a", Spec: "x", Task: dispatch.Task{Timeout: time.Second}},
		Revision: 5, Since: millis(7)}); !reflect.DeepEqual(*got, want) {
		t.Errorf("decoded\n got %+v\nwant %+v", *got, want)
	}
}

func TestEntriesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	body := unhex(t, goldenEntryBody)
	for name, value := range map[string]string{
		"nothing":              "",
		"no body":              goldenEntryLine,
		"only a header":        strings.TrimSpace(goldenEntryLine),
		"another version":      "2" + goldenEntryLine[1:] + body,
		"too few numbers":      "1 1 0 1  @daily\n" + body,
		"too many numbers":     "1 1 0 1 1 1  @daily\n" + body,
		"text for a number":    "1 x 0 1 1  @daily\n" + body,
		"an owner not escaped": "1 1 0 1 1 %zz @daily\n" + body,
		"a part":               goldenEntryLine + body[:len(body)-1],
		"something behind":     goldenEntryLine + body + "\x00",
		"no task":              goldenEntryLine + "\x80",
		"a text for the spec":  goldenEntryLine + "\x82\x01\x91\x01\x05\xc4\x06\x00\x00\x00\x00\x01\x80",
	} {
		if e, err := decodeEntry("a", value); err == nil {
			t.Errorf("entry with %s is read as %+v", name, e)
		} else if e.Name != "a" || !reflect.DeepEqual(e.Task, dispatch.Task{}) || e.Spec != "" {
			t.Errorf("of an entry with %s is left %+v", name, e)
		}
	}
}

func FuzzDecodeEntry(f *testing.F) {
	f.Add(goldenEntryLine + unhex(f, goldenEntryBody))
	seedBodies(f, func(body string) {
		f.Add("1 5 0 7 0  x+\n" + body)
		f.Add("1 5 0 7 0  x+\n\x81\x05\xc5" + string([]byte{byte(len(body) >> 8), byte(len(body))}) + body)
	})
	f.Fuzz(func(t *testing.T, value string) {
		first, err := decodeEntry("a", value)
		if err != nil {
			return
		}
		content, err := encodeEntry(first)
		ok(t, err)
		second, err := decodeEntry("a", "1 5 0 7 0 "+content)
		ok(t, err)
		again, err := encodeEntry(second)
		ok(t, err)
		if again != content {
			t.Errorf("%+v is written as %q, then as %q", first, content, again)
		}
	})
}

// An entry that another version of the program has written is listed without its Spec, and the others are there.
func TestUnreadableEntryAmongOthers(t *testing.T) {
	t.Parallel()
	s := openMini(t)
	ctx := t.Context()
	for _, name := range []string{"a", "b", "c"} {
		ok(t, s.PutEntry(ctx, cronEntry(name, "@daily")))
	}
	ok(t, s.client.HSet(ctx, s.cronKey(), "b", "1 5 0 7 0 team x\n\x05").Err())
	due, _, _, err := s.DueEntries(ctx, 0, 10)
	if err != nil || len(due) != 3 {
		t.Fatalf("due: %v, %v", due, err)
	}
	if want := (dispatch.EntryInfo{Entry: dispatch.Entry{Name: "b"}, Owner: "team", Revision: 5, Since: millis(7)}); !reflect.DeepEqual(*due[1], want) {
		t.Errorf("got %+v, want %+v", *due[1], want)
	}
	if all, _, err := s.Entries(ctx, 0); err != nil || len(all) != 3 {
		t.Errorf("entries: %v, %v", all, err)
	}
	if _, err := s.Entry(ctx, "b"); !errors.Is(err, errMalformed) {
		t.Errorf("entry: got %v", err)
	}
	// Whoever knows better replaces it, and anybody removes it.
	ok(t, s.PutEntry(ctx, cronEntry("b", "@hourly")))
	if e, err := s.Entry(ctx, "b"); err != nil || e.Spec != "@hourly" || e.Revision <= 5 {
		t.Errorf("entry: %+v, %v", e, err)
	}
	ok(t, s.client.HSet(ctx, s.cronKey(), "b", "of another layout").Err())
	if err := s.PauseEntry(ctx, "b", true); !errors.Is(err, dispatch.ErrEntryNotFound) {
		t.Errorf("pause: got %v", err)
	}
	ok(t, s.DeleteEntry(ctx, "b", 0))
}

// One call reads no more than it has to of entries that are large.
func TestDueEntriesAreBounded(t *testing.T) {
	onTwo(t, func(t *testing.T, b backend) {
		s := b.open(t)
		for i, size := range []int{700, 300, 150, 300} {
			e := cronEntry(fmt.Sprint("e", i), "@daily")
			e.Task.Payload = make([]byte, size<<10)
			ok(t, s.PutEntry(t.Context(), e))
		}
		for _, want := range []int{1, 2, 1, 0} {
			due, _, _, err := s.DueEntries(t.Context(), 0, 1000)
			ok(t, err)
			if len(due) != want {
				t.Errorf("%d entries, want %d", len(due), want)
			}
			for _, e := range due {
				ok(t, s.DeleteEntry(t.Context(), e.Name, e.Revision))
			}
		}
		if due, _, _, err := s.DueEntries(t.Context(), 0, -1); err != nil || len(due) != 0 {
			t.Errorf("with a limit below zero: %v, %v", due, err)
		}
	})
}

// A server that has lost its last writes gives no revision a second time: somebody may still hold it.
func TestRevisionsAfterALoss(t *testing.T) {
	t.Parallel()
	s := openMini(t)
	ctx := t.Context()
	ok(t, s.PutEntry(ctx, cronEntry("a", "@daily")))
	before, err := s.Entry(ctx, "a")
	ok(t, err)
	ok(t, s.client.Del(ctx, s.cronKey(), s.cronNextKey(), s.cronLastKey()).Err())
	s.advance(time.Millisecond)
	ok(t, s.PutEntry(ctx, cronEntry("a", "@hourly")))
	if after, err := s.Entry(ctx, "a"); err != nil || after.Revision <= before.Revision {
		t.Errorf("revision %d after %d, %v", after.Revision, before.Revision, err)
	}
}

func TestCronKeyNames(t *testing.T) {
	t.Parallel()
	server := miniredis.NewMiniRedis()
	s := &testStore{Store: newTestStore(t, dialMini(t, server), Options{}, "")}
	ok(t, s.PutEntry(t.Context(), cronEntry("a", "@daily")))
	want := []string{"dispatch:{~}:cron", "dispatch:{~}:cron:last", "dispatch:{~}:cron:next", "dispatch:{~}:schema"}
	got := server.Keys()
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("keys are %v, want %v", got, want)
	}
}

// A full server takes no entry, and nothing of one; what it has goes on firing, and can be paused and removed.
func TestFullServerAndCron(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--maxmemory-policy", "noeviction")
	client, err := openClient(t.Context(), server.URL())
	ok(t, err)
	defer client.Close()
	s := newTestStore(t, client, Options{}, "")
	ctx := t.Context()
	for _, name := range []string{"a", "b", "c"} {
		ok(t, s.PutEntry(ctx, cronEntry(name, "@daily")))
	}
	ok(t, s.PauseEntry(ctx, "c", true))
	_, err = server.Command("CONFIG", "SET", "maxmemory", "1mb") // less than an empty server has
	ok(t, err)

	before, err := s.Entry(ctx, "a")
	ok(t, err)
	for _, e := range []*dispatch.EntryInfo{cronEntry("a", "@hourly"), cronEntry("new", "@daily")} {
		if err := s.PutEntry(ctx, e); !errors.Is(err, dispatch.ErrStoreFull) || errors.Is(err, dispatch.ErrUncertain) {
			t.Errorf("put %s: got %v", e.Name, err)
		}
	}
	if after, err := s.Entry(ctx, "a"); err != nil || !reflect.DeepEqual(after, before) {
		t.Errorf("entry %+v, before %+v, %v", after, before, err)
	}
	if _, err := s.Entry(ctx, "new"); !errors.Is(err, dispatch.ErrEntryNotFound) {
		t.Errorf("entry: got %v", err)
	}
	ok(t, s.PutEntry(ctx, cronEntry("a", "@daily"))) // as it is

	ok(t, s.PauseEntry(ctx, "c", false))
	ok(t, s.PauseEntry(ctx, "b", true))
	due, _, _, err := s.DueEntries(ctx, 0, 10)
	if err != nil || len(due) != 2 || due[1].Name != "c" {
		t.Errorf("due: %v, %v", due, err)
	}
	for _, e := range due {
		if moved, err := s.AdvanceEntry(ctx, advanceOf(e)); err != nil || !moved {
			t.Errorf("advanced: %v, %v", moved, err)
		}
	}
	if due, _, wait, err := s.DueEntries(ctx, 0, 10); err != nil || len(due) != 0 || wait <= 0 {
		t.Errorf("due: %v, %v, %v", due, wait, err)
	}
	ok(t, s.DeleteEntry(ctx, "b", 0))
	if all, _, err := s.Entries(ctx, 0); err != nil || len(all) != 2 {
		t.Errorf("entries: %v, %v", all, err)
	}
}

// A purge that ended halfway leaves the removal to claims, and the hour of a derived name to them, too.
func TestDerivedAfterABrokenPurge(t *testing.T) {
	onTwo(t, func(t *testing.T, b backend) {
		s, f := flaky(t, b)
		derived, plain := namedTask("derived"), namedTask("plain")
		derived.Derived = true
		enqueue(t, s, derived, plain, task("unnamed"))
		f.plan("purge_slice", fault{err: said("ERR broken")})
		if err := s.PurgeQueue(t.Context(), mail, 0); err == nil {
			t.Fatal("the purge did not break")
		}
		if got := ids(claim(t, s, alice, 1, 10).Leased); got != "" {
			t.Errorf("claimed %q", got)
		}
		derived.Nonce = 2
		for _, taken := range []bool{true, false} {
			plain.Nonce++
			if got := enqueue(t, s, derived, plain, task("unnamed")).Duplicate; !slices.Equal(got, []bool{taken, false, false}) {
				t.Errorf("taken are %v, want %v for the first and no more", got, taken)
			}
			remove(t, s, 0, "plain")
			s.advance(time.Hour + time.Millisecond)
		}
		sound(t, s, mail)
	})
}

// The flag of a derived ID is part of the layout.
func TestDerivedRecord(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		named, derived bool
		flags          byte
	}{{false, false, 0}, {true, false, 1}, {true, true, 3}} {
		sub := task("a")
		sub.Named, sub.Derived = c.named, c.derived
		body, err := encodeRecord(&sub)
		ok(t, err)
		record := stamped(body)
		if record[stampBytes] != c.flags || recordDerived(record) != c.derived {
			t.Errorf("%+v: flags %d, derived %v", c, record[stampBytes], recordDerived(record))
		}
	}
	if recordDerived("") || recordDerived("\x01\x00") {
		t.Error("a record that is none is derived")
	}
}
