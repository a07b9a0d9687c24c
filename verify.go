package dispatch

import (
	"context"
	"time"
)

const (
	// verifyPause is the time between two looks: an idle fleet is to cost next to nothing. So a pass over fifteen queues
	// takes a minute, and over more of them longer.
	verifyPause = 4 * time.Second
	// hurriedPause is that time in a pass after the death of a worker.
	hurriedPause = 5 * time.Millisecond
	// verifyPass is how long a pass takes at least, however few queues there are.
	verifyPass = 15 * time.Second
)

// verify looks at one queue after the other, whatever is noted, and repairs the notes of those that have something to do
// sooner than is noted. It finds tasks whose announcement was lost with the process that died between storing and
// announcing them. Those of a worker are looked for as soon as it is found dead. Of a producer they can only be tasks
// that it was not told to be stored; finding these may take a pass.
func (t *term) verify(ctx context.Context) {
	for hurry := false; ctx.Err() == nil; {
		began := t.d.opts.Clock.Now()
		if died := t.verifyAll(ctx, hurry); died {
			hurry = true
			continue // from the beginning
		}
		hurry = t.d.pauseOr(ctx, verifyPass-t.d.opts.Clock.Now().Sub(began), t.died)
	}
}

// verifyAll is one pass, which ends when ctx does, when the store does not answer, and when a worker has died.
func (t *term) verifyAll(ctx context.Context, hurry bool) (died bool) {
	pause := verifyPause
	if hurry {
		pause = hurriedPause
	}
	failed := false
	for cursor := uint64(0); ; {
		names, next, err := t.d.store.Queues(ctx, cursor)
		if err != nil {
			t.failed(ctx, "verify", err)
			return false
		}
		for _, name := range names {
			if t.d.pauseOr(ctx, soonerThan(pause), t.died) {
				return true
			}
			hints, err := t.d.store.Look(ctx, []string{name})
			if ctx.Err() != nil {
				return false
			}
			if err != nil {
				t.failed(ctx, "verify", err) // the others may be well
				failed = true
				continue
			}
			t.d.hear(hints)
		}
		if cursor = next; cursor == 0 {
			if !failed {
				t.d.log.recovered("verify")
			}
			return false
		}
	}
}
