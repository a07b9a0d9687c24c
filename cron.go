package dispatch

import (
	"fmt"
	"regexp"
	"time"

	"github.com/dispatchkit/dispatch/internal/cron"
)

// Misfire is what becomes of ticks of a cron entry that were missed, because no leader was there to fire them within a
// minute.
type Misfire string

// The ways to deal with missed ticks.
const (
	// MisfireOnce fires the last one of them. It is the default.
	MisfireOnce Misfire = "once"
	// MisfireSkip fires none.
	MisfireSkip Misfire = "skip"
	// MisfireAll fires all, up to the last hundred.
	MisfireAll Misfire = "all"
)

// Entry is a cron entry: a task that is enqueued again and again by the clock. The clock is the store's.
type Entry struct {
	// Name names the entry: 1 to 100 characters of [A-Za-z0-9_-]. The task of a tick has the ID "<name>-<unix seconds of
	// the tick>", whose name stays taken for at least an hour after its end: a tick makes one task.
	Name string
	// Spec says when: five fields for minute, hour, day of month, month and day of week, with lists (1,15), ranges
	// (mon-fri) and steps (*/5); or @hourly, @daily (or @midnight), @weekly, @monthly, @yearly (or @annually); or "@every 90s",
	// at the multiples of a duration since 1970: whole seconds, at least one and at most ten years. When both days are
	// given, either is enough. A spec that never comes true is refused.
	//
	// When clocks are put forward, an entry with fixed hours and minutes runs at the first instant after the gap instead of
	// in it; when they are put back, it runs once, the first time. Entries with a * for minute or hour follow real time.
	Spec string
	// Zone is the time zone of the fields, such as "Europe/Berlin"; empty means UTC. "Local" is
	// refused, for it differs between machines.
	Zone string
	// Task is what is enqueued. It has no ID, Delay or ScheduleTime of its own.
	Task Task
	// Misfire is what becomes of missed ticks; empty means MisfireOnce.
	Misfire Misfire
}

// EntryInfo is a cron entry as the store holds it.
type EntryInfo struct {
	Entry
	// Owner is the name under which SyncSchedules keeps the entry; empty for one made by Schedule.
	Owner string
	// Paused says that no tick fires.
	Paused bool
	// Revision rises with every change.
	Revision int64
	// Since is the instant up to which ticks were dealt with, and Next that of the next tick: zero when the leader has not
	// planned it yet, and while the entry is paused. Both by the store's clock.
	Since, Next time.Time
}

// maxEntryTask bounds the task of a cron entry, in bytes: all entries are kept in one place.
const maxEntryTask = 64 << 10

var entryNamePattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,100}$`)

// Ticks returns the first n ticks after an instant, in UTC, whatever the state of the entry; fewer if there are not so
// many. The error is a *FieldError.
func (e Entry) Ticks(after time.Time, n int) ([]time.Time, error) {
	schedule, err := e.schedule()
	if err != nil {
		return nil, err
	}
	var ticks []time.Time
	for range n {
		tick, ok := schedule.Next(after)
		if !ok {
			break
		}
		ticks = append(ticks, tick)
		after = tick
	}
	return ticks, nil
}

func (e *Entry) schedule() (*cron.Schedule, error) {
	if e.Zone == "Local" {
		return nil, fieldErrorf("Entry.Zone", "is that of the machine, which differs from process to process")
	}
	zone, err := time.LoadLocation(e.Zone)
	if err != nil {
		return nil, fieldErrorf("Entry.Zone", "%q is not known here", clip(e.Zone, 60)) // what err says is not clipped
	}
	schedule, err := cron.Parse(e.Spec, zone)
	if err != nil {
		return nil, fieldErrorf("Entry.Spec", "%v", err)
	}
	return schedule, nil
}

func validateEntryName(name string) error {
	if !entryNamePattern.MatchString(name) {
		return fieldErrorf("Entry.Name", "%q does not match %s", clip(name, 120), entryNamePattern)
	}
	return nil
}

// normalize checks an entry and fills in what it leaves open.
func (e Entry) normalize(now time.Time) (Entry, error) {
	if err := validateEntryName(e.Name); err != nil {
		return e, err
	}
	if _, err := e.schedule(); err != nil {
		return e, err
	}
	switch e.Misfire {
	case "":
		e.Misfire = MisfireOnce
	case MisfireOnce, MisfireSkip, MisfireAll:
	default:
		return e, fieldErrorf("Entry.Misfire", "%q is none of once, skip and all", clip(string(e.Misfire), 20))
	}
	switch {
	case e.Task.ID != "":
		return e, fieldErrorf("Entry.Task.ID", "is made of the entry's name and the tick")
	case e.Task.Unique != nil:
		return e, fieldErrorf("Entry.Task.Unique", "makes the ID, which is made of the entry's name and the tick")
	case e.Task.Delay != 0 || !e.Task.ScheduleTime.IsZero():
		return e, fieldErrorf("Entry.Task", "has a Delay or a ScheduleTime; the tick is when it is due")
	}
	task, err := e.Task.normalize(now)
	if err != nil {
		return e, within("Entry.Task", "Task", err)
	}
	if size := task.size(); size > maxEntryTask {
		return e, fieldErrorf("Entry.Task", "has %d bytes, more than %d", size, maxEntryTask)
	}
	e.Task = task
	return e, nil
}

// tickID is the ID of the task of a tick.
func tickID(name string, tick time.Time) TaskID {
	return TaskID(fmt.Sprintf("%s-%d", name, tick.Unix()))
}
