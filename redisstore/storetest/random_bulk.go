package storetest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dispatchkit/dispatch"
)

// some picks IDs of tasks, also unknown ones, and also twice.
func (r *random) some(wanted func(*modelTask) bool) []string {
	known := []string{"none"}
	for id, t := range r.model.tasks {
		if wanted(t) {
			known = append(known, id)
		}
	}
	slices.Sort(known)
	ids := make([]string, 1+r.IntN(4))
	for i := range ids {
		ids[i] = pick(r, known)
	}
	return ids
}

func (r *random) deleteSome() {
	ids := r.some(func(*modelTask) bool { return true })
	o := dispatch.DeleteOptions{Tombstone: r.millis(time.Minute), DeadOnly: r.IntN(3) == 0}
	r.did("delete tasks %v %+v", ids, o)
	var want []bool
	got := sent(r, by("delete", func(again bool) {
		if !again || !slices.Contains(want, true) { // the store knows by its number what was removed
			want = r.model.delete(ids, o)
		}
	}), func() []bool {
		got, err := r.store.DeleteTasks(r.ctx, queue, taskIDs(ids), o)
		r.ok(err)
		return got
	})
	equal(r.env, "deleted", got, want)
	for r.often() {
		r.did("delete tasks again")
		r.store = r.plain
		got, err := r.store.DeleteTasks(r.ctx, queue, taskIDs(ids), o)
		r.ok(err)
		equal(r.env, "deleted again", got, r.model.delete(ids, o))
	}
}

// replaySome replays mostly dead tasks, under their own IDs or new ones.
func (r *random) replaySome() {
	any := r.IntN(5) == 0
	ids := r.some(func(t *modelTask) bool { return any || t.state == dispatch.TaskDead })
	rename := r.IntN(2) == 0
	tasks := make([]dispatch.Replay, len(ids))
	for i, id := range ids {
		tasks[i].ID = dispatch.TaskID(id)
		if rename {
			r.newIDs++
			tasks[i].NewID = dispatch.TaskID(fmt.Sprintf("r%03d", r.newIDs))
		}
	}
	r.did("replay %v", tasks)
	var want dispatch.ReplayReply
	var err error
	got := sent(r, by("replay", func(again bool) {
		if again && slices.Contains(want.Replayed, true) {
			want.Moved, want.Wait = true, max(r.model.headWait(), 0)
			return
		}
		want = r.model.replay(tasks)
	}), func() (got dispatch.ReplayReply) {
		got, err = r.store.ReplayTasks(r.ctx, queue, tasks)
		return got
	})
	if errors.Is(err, dispatch.ErrUncertain) && r.store != r.plain && !rename {
		return // it is not made again: the tasks may be dead again by then
	}
	r.ok(err)
	equal(r.env, "replayed", got.Replayed, want.Replayed)
	equal(r.env, "moved", got.Moved, want.Moved)
	if want.Moved {
		equal(r.env, "wait", got.Wait, want.Wait)
	}
	for r.often() {
		r.did("replay again")
		r.store = r.plain
		again := r.model.replay(tasks) // they wait; under their own IDs they are not dead
		equal(r.env, "replayed again", r.replayAs(tasks...).Replayed, again.Replayed)
	}
}
