package storetest

import (
	"cmp"
	"fmt"
	"net/http"
	"time"

	"github.com/dispatchkit/dispatch"
)

var cronCases = []testcase{
	{"every field of an entry comes back", entryComesBack},
	{"an entry that is put again is replaced", putReplaces},
	{"an entry that is put again as it is stays as it is", putAgain},
	{"a put does not pause or resume", putAndPause},
	{"an entry is deleted at its revision", deleteEntry},
	{"an entry that does not exist is not found", entryNotFound},
	{"revisions rise, also from an entry that is gone to a new one", revisionsRise},
	{"a resumption begins anew", pauseAndResume},
	{"all entries are listed", entriesAreListed},
	{"changes are announced, and only changes", changesAreAnnounced},
}

// entry is a cron entry, changed by edits.
func entry(name string, edits ...func(*dispatch.EntryInfo)) *dispatch.EntryInfo {
	e := &dispatch.EntryInfo{Entry: dispatch.Entry{
		Name: name, Spec: "* * * * *", Task: dispatch.Task{Queue: queue, Kind: "test", Timeout: timeout}}}
	for _, edit := range edits {
		edit(e)
	}
	return e
}

// spec gives an entry another time.
func spec(s string) func(*dispatch.EntryInfo) {
	return func(e *dispatch.EntryInfo) { e.Spec = s }
}

// putEntry stores entries and returns the last one as it is stored.
func (e *env) putEntry(entries ...*dispatch.EntryInfo) *dispatch.EntryInfo {
	e.Helper()
	for _, entry := range entries {
		e.ok(e.store.PutEntry(e.ctx, entry))
	}
	return e.entry(entries[len(entries)-1].Name)
}

// entry reads an entry that must be there.
func (e *env) entry(name string) *dispatch.EntryInfo {
	e.Helper()
	got, err := e.store.Entry(e.ctx, name)
	if err != nil {
		e.Fatalf("entry %s: %v", name, err)
	}
	return got
}

// plan advances an entry to now, with its next tick after a while.
func (e *env) plan(entry *dispatch.EntryInfo, next time.Duration) {
	e.Helper()
	now := e.now()
	e.moved(dispatch.EntryAdvance{Name: entry.Name, Revision: entry.Revision, Since: now, Next: now.Add(next)}, true)
}

// moved advances an entry and demands that it counts or not.
func (e *env) moved(a dispatch.EntryAdvance, want bool) {
	e.Helper()
	got, err := e.store.AdvanceEntry(e.ctx, a)
	e.ok(err)
	if got != want {
		e.Errorf("advancing %s to %v: got %v, want %v", a.Name, a.Since, got, want)
	}
}

func (e *env) pauseEntry(name string, paused bool) {
	e.Helper()
	e.ok(e.store.PauseEntry(e.ctx, name, paused))
}

func entryComesBack(e *env) {
	for i, want := range []*dispatch.EntryInfo{
		entry("plain"),
		entry("owned", func(i *dispatch.EntryInfo) { i.Owner = "billing" }),
		{Entry: dispatch.Entry{Name: "every-field_1", Spec: "@every 90s", Zone: "Europe/Berlin", Misfire: dispatch.MisfireAll,
			Task: dispatch.Task{Queue: "other", URL: "https://a.example/?b=c", Method: http.MethodPut,
				Header: http.Header{"X-A": {"1", "2"}}, Payload: []byte("\x00\xff 1 2\n\xfe"), Timeout: 90 * time.Second,
				Retry:    &dispatch.RetryConfig{MaxAttempts: 3, MaxRetryDuration: -1, MinBackoff: time.Second},
				Metadata: map[string]string{"a": "1", "b": ""}}},
			Owner: "any text, spaces\nand lines: 100 % ü"},
	} {
		got := e.putEntry(func() *dispatch.EntryInfo {
			sent := *want // what the store decides by itself is ignored
			sent.Revision, sent.Paused, sent.Since, sent.Next = 77, true, time.Unix(7, 0), time.Unix(8, 0)
			return &sent
		}())
		e.at("since", got.Since, e.now())
		if got.Revision <= 0 || got.Revision == 77 {
			e.Errorf("revision %d", got.Revision)
		}
		stored := *want
		stored.Revision, stored.Since = got.Revision, got.Since
		equal(e, fmt.Sprint("entry ", i), got, &stored)
		due, _ := e.due(1, want.Name)
		equal(e, "due entry", due[0], got)
		e.plan(got, time.Hour)
		stored.Since, stored.Next = e.now(), e.now().Add(time.Hour)
		equal(e, fmt.Sprint("planned entry ", i), e.entry(want.Name), &stored)
		e.advance(time.Second)
	}
}

func putReplaces(e *env) {
	for i, change := range []func(*dispatch.EntryInfo){
		spec("1 * * * *"),
		func(i *dispatch.EntryInfo) { i.Zone = "Asia/Tokyo" },
		func(i *dispatch.EntryInfo) { i.Misfire = dispatch.MisfireSkip },
		func(i *dispatch.EntryInfo) { i.Owner = "billing" },
		func(i *dispatch.EntryInfo) { i.Task.Queue = "other" },
		func(i *dispatch.EntryInfo) { i.Task.Payload = []byte("x") },
		func(i *dispatch.EntryInfo) { i.Task.Timeout += time.Second },
	} {
		before := e.putEntry(entry("a"))
		e.plan(before, time.Hour)
		e.advance(time.Second)
		want := entry("a", change)
		got := e.putEntry(want)
		if got.Revision <= before.Revision {
			e.Errorf("change %d: revision %d after %d", i, got.Revision, before.Revision)
		}
		if got.Spec != before.Spec || got.Zone != before.Zone {
			e.at("since", got.Since, e.now())
		} else {
			e.at("since", got.Since, e.now().Add(-time.Second)) // when it was planned: no tick that is due is lost
		}
		e.at("next", got.Next, time.Time{})
		equal(e, "owner", got.Owner, cmp.Or(want.Owner, before.Owner)) // no owner leaves it to the one that it has
		e.due(10, "a")
	}
}

func putAgain(e *env) {
	full := entry("a", func(i *dispatch.EntryInfo) {
		i.Owner = "billing"
		i.Task.Header = http.Header{"X-A": {"1"}, "X-B": {"2"}, "X-C": {"3"}}
		i.Task.Metadata = map[string]string{"a": "1", "b": "2", "c": "3"}
	})
	before := e.putEntry(full)
	e.advance(time.Second)
	equal(e, "before it is planned", e.putEntry(full), before)
	e.plan(before, time.Minute)
	planned := e.entry("a")
	e.advance(time.Second)
	for range 10 {
		equal(e, "planned", e.putEntry(full), planned)
	}
	e.due(10)
	e.advance(time.Hour)
	equal(e, "overdue", e.putEntry(full), planned) // the ticks that were missed stay missed
	e.due(10, "a")
}

func putAndPause(e *env) {
	e.putEntry(entry("a"))
	e.pauseEntry("a", true)
	paused := e.entry("a")
	equal(e, "put as it is", e.putEntry(entry("a")), paused)
	got := e.putEntry(entry("a", spec("1 * * * *")))
	equal(e, "paused", got.Paused, true)
	if got.Revision <= paused.Revision {
		e.Errorf("revision %d after %d", got.Revision, paused.Revision)
	}
	e.due(10)
	e.pauseEntry("a", false)
	e.due(10, "a")
	equal(e, "resumed", e.putEntry(entry("a", spec("2 * * * *"), func(i *dispatch.EntryInfo) { i.Paused = true })).Paused, false)
}

func deleteEntry(e *env) {
	old := e.putEntry(entry("b"), entry("a"))
	now := e.putEntry(entry("a", spec("1 * * * *")))
	for _, revision := range []int64{old.Revision, now.Revision + 1, -1, 1} {
		e.fails("delete", e.store.DeleteEntry(e.ctx, "a", revision), dispatch.ErrEntryNotFound)
	}
	equal(e, "entry", e.entry("a"), now)
	e.ok(e.store.DeleteEntry(e.ctx, "a", now.Revision))
	e.due(10, "b")
	_, err := e.store.Entry(e.ctx, "a")
	e.fails("entry", err, dispatch.ErrEntryNotFound)
	e.fails("delete", e.store.DeleteEntry(e.ctx, "a", now.Revision), dispatch.ErrEntryNotFound)
	e.fails("delete", e.store.DeleteEntry(e.ctx, "a", 0), dispatch.ErrEntryNotFound)
	e.ok(e.store.DeleteEntry(e.ctx, "b", 0))
	_, wait := e.due(10)
	e.never("wait", wait)
	e.pauseEntry(e.putEntry(entry("a")).Name, true)
	e.ok(e.store.DeleteEntry(e.ctx, "a", 0))
	equal(e, "a new one is paused", e.putEntry(entry("a")).Paused, false)
}

func entryNotFound(e *env) {
	e.putEntry(entry("a"))
	_, err := e.store.Entry(e.ctx, "b")
	e.fails("entry", err, dispatch.ErrEntryNotFound)
	for _, paused := range []bool{true, false} {
		e.fails("pause", e.store.PauseEntry(e.ctx, "b", paused), dispatch.ErrEntryNotFound)
	}
	e.moved(dispatch.EntryAdvance{Name: "b", Revision: e.entry("a").Revision, Since: e.now()}, false)
}

func revisionsRise(e *env) {
	last := int64(0)
	rises := func(what string) {
		e.Helper()
		now := e.entry("a").Revision
		if now <= last {
			e.Errorf("%s: revision %d after %d", what, now, last)
		}
		last = now
	}
	for i := range 3 { // all in one millisecond, then with the clock set back
		e.putEntry(entry("a"))
		rises("create")
		e.putEntry(entry("a", spec("1 * * * *")))
		rises("put")
		e.pauseEntry("a", true)
		rises("pause")
		e.pauseEntry("a", false)
		rises("resume")
		e.ok(e.store.DeleteEntry(e.ctx, "a", last))
		if i == 1 {
			e.advance(-time.Hour)
		}
	}
}

func pauseAndResume(e *env) {
	before := e.putEntry(entry("a"))
	e.pauseEntry("a", false) // it is not paused
	equal(e, "entry", e.entry("a"), before)
	e.plan(before, time.Minute)
	e.pauseEntry("a", true)
	paused := e.entry("a")
	equal(e, "paused", paused.Paused, true)
	e.at("next", paused.Next, time.Time{})
	e.advance(time.Hour)
	e.pauseEntry("a", true)
	equal(e, "paused again", e.entry("a"), paused)
	_, wait := e.due(10)
	e.never("wait", wait)
	for _, revision := range []int64{before.Revision, paused.Revision} {
		e.moved(dispatch.EntryAdvance{Name: "a", Revision: revision, Since: e.now(), Next: e.now().Add(time.Minute)}, false)
	}
	e.pauseEntry("a", false)
	got := e.entry("a")
	equal(e, "resumed", got.Paused, false)
	e.at("since", got.Since, e.now())
	e.at("next", got.Next, time.Time{})
	e.due(10, "a")
	for _, revision := range []int64{before.Revision, paused.Revision} { // who read it before knows an older Since
		e.moved(dispatch.EntryAdvance{Name: "a", Revision: revision, Since: e.now().Add(time.Second)}, false)
	}
	e.advance(time.Second)
	e.pauseEntry("a", false)
	equal(e, "resumed again", e.entry("a"), got)
}

func entriesAreListed(e *env) {
	const n = 250
	for i := range n {
		e.ok(e.store.PutEntry(e.ctx, entry(fmt.Sprintf("e%03d", i), spec(fmt.Sprint("@every ", i+1, "s")))))
	}
	e.pauseEntry("e007", true)
	seen := make(map[string]*dispatch.EntryInfo)
	for cursor := uint64(0); ; {
		page, next, err := e.store.Entries(e.ctx, cursor)
		e.ok(err)
		for _, entry := range page {
			seen[entry.Name] = entry
		}
		if cursor = next; cursor == 0 {
			break
		}
	}
	equal(e, "entries", len(seen), n)
	for _, name := range []string{"e000", "e007", "e249"} {
		equal(e, name, seen[name], e.entry(name))
	}
}

func changesAreAnnounced(e *env) {
	l := e.listen()
	announced := func(what string, want bool) {
		e.Helper()
		e.ok(e.store.Announce(e.ctx, []dispatch.Hint{{Queue: "mark"}})) // comes after whatever was announced before
		var got []dispatch.Hint
		for {
			heard := receive(e, what, l.heard)
			if heard[0].Queue == "mark" {
				break
			}
			got = append(got, heard...)
		}
		if (len(got) > 0) != want || want && got[0] != (dispatch.Hint{Queue: dispatch.HintCron}) {
			e.Errorf("%s: heard %v", what, got)
		}
	}
	e.putEntry(entry("a"))
	announced("create", true)
	e.putEntry(entry("a"))
	announced("put as it is", false)
	e.pauseEntry("a", false)
	announced("resume what runs", false)
	a := e.putEntry(entry("a", spec("1 * * * *")))
	announced("put", true)
	e.plan(a, time.Hour)
	announced("advance", false)
	e.pauseEntry("a", true)
	e.pauseEntry("a", false)
	announced("resume", true)
	noted, err := e.store.Hints(e.ctx, time.Hour)
	e.ok(err)
	for _, h := range noted {
		if h.Queue == dispatch.HintCron {
			e.Errorf("noted %v", h)
		}
	}
	l.stop(e)
}
