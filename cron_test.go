package dispatch_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dispatchkit/dispatch"
)

func TestEntryTicks(t *testing.T) {
	e := dispatch.Entry{Spec: "30 2 * * *", Zone: "America/New_York"}
	from := time.Date(2026, time.March, 7, 12, 0, 0, 0, time.UTC)
	got, err := e.Ticks(from, 5)
	if err != nil {
		t.Fatal(err)
	}
	want := []time.Time{
		time.Date(2026, time.March, 8, 7, 0, 0, 0, time.UTC), // 2:30 does not exist: the instant after the gap
		time.Date(2026, time.March, 9, 6, 30, 0, 0, time.UTC),
		time.Date(2026, time.March, 10, 6, 30, 0, 0, time.UTC),
		time.Date(2026, time.March, 11, 6, 30, 0, 0, time.UTC),
		time.Date(2026, time.March, 12, 6, 30, 0, 0, time.UTC),
	}
	if !slices.EqualFunc(got, want, time.Time.Equal) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestBadEntries(t *testing.T) {
	good := dispatch.Entry{Name: "nightly", Spec: "0 3 * * *", Task: dispatch.Task{Kind: "k"}}
	for name, c := range map[string]struct {
		edit  func(*dispatch.Entry)
		field string
	}{
		"no name":         {func(e *dispatch.Entry) { e.Name = "" }, "Entry.Name"},
		"long name":       {func(e *dispatch.Entry) { e.Name = strings.Repeat("n", 101) }, "Entry.Name"},
		"spaced name":     {func(e *dispatch.Entry) { e.Name = "a b" }, "Entry.Name"},
		"no spec":         {func(e *dispatch.Entry) { e.Spec = "" }, "Entry.Spec"},
		"bad spec":        {func(e *dispatch.Entry) { e.Spec = "61 * * * *" }, "Entry.Spec"},
		"never":           {func(e *dispatch.Entry) { e.Spec = "0 0 31 2 *" }, "Entry.Spec"},
		"every nothing":   {func(e *dispatch.Entry) { e.Spec = "@every 0s" }, "Entry.Spec"},
		"unknown zone":    {func(e *dispatch.Entry) { e.Zone = "Mars/Olympus" }, "Entry.Zone"},
		"local zone":      {func(e *dispatch.Entry) { e.Zone = "Local" }, "Entry.Zone"},
		"path as zone":    {func(e *dispatch.Entry) { e.Zone = "../../etc/passwd" }, "Entry.Zone"},
		"unknown misfire": {func(e *dispatch.Entry) { e.Misfire = "twice" }, "Entry.Misfire"},
		"task with an ID": {func(e *dispatch.Entry) { e.Task.ID = "x" }, "Entry.Task.ID"},
		"unique task":     {func(e *dispatch.Entry) { e.Task.Unique = new(dispatch.Unique) }, "Entry.Task.Unique"},
		"delayed task":    {func(e *dispatch.Entry) { e.Task.Delay = time.Second }, "Entry.Task"},
		"scheduled task":  {func(e *dispatch.Entry) { e.Task.ScheduleTime = time.Now() }, "Entry.Task"},
		"bad task":        {func(e *dispatch.Entry) { e.Task.Kind = "" }, "Entry.Task"},
		"bad queue":       {func(e *dispatch.Entry) { e.Task.Queue = "~" }, "Entry.Task.Queue"},
		"large task":      {func(e *dispatch.Entry) { e.Task.Payload = make([]byte, 64<<10) }, "Entry.Task"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, dispatch.Options{})
			entry := good
			c.edit(&entry)
			requireField(t, e.d.Schedule(t.Context(), entry), c.field)
			requireField(t, e.d.SyncSchedules(t.Context(), "app", []dispatch.Entry{good, entry}),
				"SyncSchedules.entries[1]"+strings.TrimPrefix(c.field, "Entry"))
			e.entries() // nothing was stored, of the good one either
		})
	}
}

// entries demands that these entries are there, and no other.
func (e *env) entries(want ...string) {
	e.Helper()
	var got []string
	for entry, err := range e.d.Entries(e.Context()) {
		e.ok(err)
		if !slices.Contains(got, entry.Name) {
			got = append(got, entry.Name)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		e.Errorf("entries %v, want %v", got, want)
	}
}

func TestSyncSchedules(t *testing.T) {
	e := newEnv(t, dispatch.Options{})
	entry := func(name string) dispatch.Entry {
		return dispatch.Entry{Name: name, Spec: "@hourly", Task: dispatch.Task{Kind: "k"}}
	}
	e.ok(e.d.Schedule(t.Context(), entry("mine")))
	e.ok(e.d.SyncSchedules(t.Context(), "billing", []dispatch.Entry{entry("a"), entry("b")}))
	e.ok(e.d.SyncSchedules(t.Context(), "mail", []dispatch.Entry{entry("c")}))
	e.entries("a", "b", "c", "mine")
	e.ok(e.d.PauseEntry(t.Context(), "b"))
	e.ok(e.d.Schedule(t.Context(), entry("a"))) // leaves it to its owner
	e.ok(e.d.SyncSchedules(t.Context(), "billing", []dispatch.Entry{entry("b"), entry("d")}))
	e.entries("b", "c", "d", "mine")
	b, err := e.d.Entry(t.Context(), "b")
	e.ok(err)
	if !b.Paused || b.Owner != "billing" {
		t.Errorf("the entry is %+v", b)
	}
	requireField(t, e.d.SyncSchedules(t.Context(), "", nil), "SyncSchedules.owner")
	requireField(t, e.d.SyncSchedules(t.Context(), "mail", []dispatch.Entry{entry("c"), entry("c")}), "SyncSchedules.entries")
	e.ok(e.d.SyncSchedules(t.Context(), "billing", nil))
	e.entries("c", "mine")
	e.ok(e.d.DeleteEntry(t.Context(), "mine"))
	e.entries("c")
	for _, err := range []error{
		e.d.DeleteEntry(t.Context(), "mine"), e.d.PauseEntry(t.Context(), "mine"), e.d.ResumeEntry(t.Context(), "mine"),
	} {
		e.fails(err, dispatch.ErrEntryNotFound)
	}
	_, err = e.d.RunEntry(t.Context(), "mine")
	e.fails(err, dispatch.ErrEntryNotFound)
}
