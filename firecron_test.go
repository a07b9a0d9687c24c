package dispatch_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dispatchkit/dispatch"
	"github.com/dispatchkit/dispatch/dispatchtest"
)

// ticks records which tasks of cron entries ran.
type ticks struct {
	mu  sync.Mutex
	ids []string
}

func (r *ticks) handle(_ context.Context, t *dispatch.Task) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ids = append(r.ids, string(t.ID))
	return nil
}

// take returns what ran since the last call, in order.
func (r *ticks) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	ids := r.ids
	r.ids = nil
	slices.Sort(ids)
	return ids
}

func (r *ticks) require(t *testing.T, want ...string) {
	t.Helper()
	if got := r.take(); !slices.Equal(got, want) {
		t.Errorf("ran %v, want %v", got, want)
	}
}

// at are the IDs of ticks so long after the start of the test.
func at(name string, offsets ...time.Duration) (ids []string) {
	for _, d := range offsets {
		ids = append(ids, fmt.Sprintf("%s-%d", name, dispatchtest.Start.Add(d).Unix()))
	}
	return ids
}

func newTicks(t *testing.T, o dispatch.Options) (*env, *ticks) {
	t.Helper()
	e := newEnv(t, o)
	r := new(ticks)
	e.handle("tick", r.handle)
	e.run()
	return e, r
}

func minutely(name string, misfire dispatch.Misfire) dispatch.Entry {
	return dispatch.Entry{Name: name, Spec: "* * * * *", Task: dispatch.Task{Kind: "tick"}, Misfire: misfire}
}

func TestCronFires(t *testing.T) {
	e, r := newTicks(t, dispatch.Options{})
	e.ok(e.d.Schedule(t.Context(), minutely("m", "")))
	e.run()
	r.require(t)
	e.advance(59*time.Second + 999*time.Millisecond)
	r.require(t)
	e.advance(time.Millisecond)
	r.require(t, at("m", time.Minute)...)
	e.run()
	r.require(t)
	for range 3 {
		e.advance(30 * time.Second)
	}
	r.require(t, at("m", 2*time.Minute)...)
	info, err := e.d.Entry(t.Context(), "m")
	e.ok(err)
	if want := dispatchtest.Start.Add(3 * time.Minute); !info.Next.Equal(want) {
		t.Errorf("the next tick is %v, want %v", info.Next, want)
	}
}

// A tick makes one task, also for leaders who do not know of each other, also when the first task is over and forgotten.
func TestCronFiresOnce(t *testing.T) {
	store := dispatchtest.NewStore(t)
	r := new(ticks)
	var all []*env
	for range 3 {
		e := another(t, store, dispatch.Options{DedupWindow: -1})
		e.handle("tick", r.handle)
		e.run()
		all = append(all, e)
	}
	all[0].ok(all[0].d.Schedule(t.Context(), minutely("m", "")))
	for i := range 10 {
		store.Advance(time.Minute)
		var wait sync.WaitGroup
		for _, e := range all {
			wait.Go(func() { e.run() })
		}
		wait.Wait()
		r.require(t, at("m", time.Duration(i+1)*time.Minute)...)
	}
}

func TestCronMisfires(t *testing.T) {
	for misfire, want := range map[dispatch.Misfire][]time.Duration{
		dispatch.MisfireSkip: {10 * time.Minute},
		dispatch.MisfireOnce: {9 * time.Minute, 10 * time.Minute},
		"":                   {9 * time.Minute, 10 * time.Minute},
		dispatch.MisfireAll: {1 * time.Minute, 2 * time.Minute, 3 * time.Minute, 4 * time.Minute, 5 * time.Minute,
			6 * time.Minute, 7 * time.Minute, 8 * time.Minute, 9 * time.Minute, 10 * time.Minute},
	} {
		t.Run(string("policy "+misfire), func(t *testing.T) {
			e, r := newTicks(t, dispatch.Options{})
			e.ok(e.d.Schedule(t.Context(), minutely("m", misfire)))
			e.run()
			e.advance(10*time.Minute + time.Second)
			want := at("m", want...)
			slices.Sort(want)
			r.require(t, want...)
			e.advance(time.Minute)
			r.require(t, at("m", 11*time.Minute)...)
		})
	}
}

func TestCronAllIsCapped(t *testing.T) {
	e, r := newTicks(t, dispatch.Options{})
	e.ok(e.d.Schedule(t.Context(), minutely("m", dispatch.MisfireAll)))
	e.run()
	e.advance(1000*time.Minute + time.Second)
	if got := r.take(); len(got) != 101 {
		t.Errorf("%d tasks ran, want the last hundred that were missed and one in time", len(got))
	}
}

func TestCronPause(t *testing.T) {
	e, r := newTicks(t, dispatch.Options{})
	e.ok(e.d.Schedule(t.Context(), minutely("m", dispatch.MisfireAll)))
	e.run()
	e.ok(e.d.PauseEntry(t.Context(), "m"))
	e.advance(5 * time.Minute)
	e.ok(e.d.Schedule(t.Context(), dispatch.Entry{Name: "m", Spec: "*/2 * * * *", Task: dispatch.Task{Kind: "tick"}}))
	e.advance(time.Minute)
	r.require(t)
	id, err := e.d.RunEntry(t.Context(), "m")
	e.ok(err)
	e.run()
	r.require(t, string(id))
	e.ok(e.d.ResumeEntry(t.Context(), "m"))
	e.advance(time.Minute)
	r.require(t)
	e.advance(time.Minute)
	r.require(t, at("m", 8*time.Minute)...)
}

// A changed entry takes effect at the next tick; one that is scheduled again as it was loses none.
func TestCronChange(t *testing.T) {
	e, r := newTicks(t, dispatch.Options{})
	e.ok(e.d.Schedule(t.Context(), minutely("m", "")))
	e.run()
	e.advance(30 * time.Second)
	hourly := dispatch.Entry{Name: "m", Spec: "@hourly", Task: dispatch.Task{Kind: "tick"}}
	e.ok(e.d.Schedule(t.Context(), hourly))
	e.advance(30 * time.Second)
	r.require(t)
	e.store.Advance(59*time.Minute + time.Second)
	e.ok(e.d.Schedule(t.Context(), hourly)) // a deploy, a second after the tick
	e.run()
	r.require(t, at("m", time.Hour)...)
}

// A task that cannot be stored, and one that never ends, keep neither the entry nor others from their next ticks.
func TestCronGoesOn(t *testing.T) {
	e, r := newTicks(t, dispatch.Options{StrictQueues: true})
	_, err := e.d.EnsureQueue(t.Context(), dispatch.Queue{Name: dispatch.DefaultQueue})
	e.ok(err)
	lost := minutely("lost", "")
	lost.Task.Queue = "nowhere"
	e.ok(e.d.Schedule(t.Context(), lost))
	e.ok(e.d.Schedule(t.Context(), minutely("m", "")))
	paused := minutely("waits", "")
	paused.Task.Queue = "paused"
	_, err = e.d.EnsureQueue(t.Context(), dispatch.Queue{Name: "paused"})
	e.ok(err)
	e.ok(e.d.PauseQueue(t.Context(), "paused"))
	e.ok(e.d.Schedule(t.Context(), paused))
	e.run()
	for i := range 3 {
		e.advance(time.Minute)
		r.require(t, at("m", time.Duration(i+1)*time.Minute)...)
	}
	e.ok(e.d.ResumeQueue(t.Context(), "paused"))
	e.run()
	r.require(t, at("waits", time.Minute, 2*time.Minute, 3*time.Minute)...)
}

// Entries that fail, however many and however slowly, and those that nobody here can fire, keep no other from its ticks.
func TestCronGoesPastFailures(t *testing.T) {
	for name, c := range map[string]struct {
		bad   int
		takes time.Duration
	}{"many at once": {120, 0}, "some that hang": {20, 5 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubble(t)
				d := b.dispatcher(dispatch.Options{})
				d.Handle("tick", nothing)
				for i := range c.bad {
					e := minutely(fmt.Sprint("a", i), "")
					e.Task.Queue = "bad"
					b.ok(d.Schedule(t.Context(), e))
				}
				b.ok(d.Schedule(t.Context(), minutely("good", "")))
				b.store.onEnqueue("bad", func() error {
					time.Sleep(c.takes)
					return errDown
				})
				b.ok(d.Start(t.Context()))
				time.Sleep(10*time.Minute + 50*time.Second)
				if n := b.seen.count(dispatch.Succeeded); n != 10 {
					t.Errorf("%d ticks of 10 ran", n)
				}
			})
		})
	}
}

// A deploy that changes the task of an entry between its tick and its firing loses nothing; one that changes its spec
// drops the tick of the old one.
func TestCronChangeAfterTheTick(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*dispatch.Entry)
		want []string
	}{
		"task": {func(e *dispatch.Entry) { e.Task.Payload = []byte("new") }, at("m", time.Hour)},
		"spec": {func(e *dispatch.Entry) { e.Spec = "30 * * * *" }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			e, r := newTicks(t, dispatch.Options{})
			entry := dispatch.Entry{Name: "m", Spec: "@hourly", Task: dispatch.Task{Kind: "tick"}}
			e.ok(e.d.Schedule(t.Context(), entry))
			e.run()
			e.ok(e.d.Stop())
			e.store.Advance(time.Hour + 90*time.Second)
			next := another(t, e.store, dispatch.Options{})
			next.handle("tick", r.handle)
			c.edit(&entry)
			e.ok(next.d.Schedule(t.Context(), entry))
			next.run()
			r.require(t, c.want...)
		})
	}
}
