package dispatch

import "context"

const (
	cleanupBatch = 100
	cleanupQueue = 100 // queues cleaned up in one pass
)

// cleanUp removes retained tasks and names whose time is over, in slices.
func (t *term) cleanUp(ctx context.Context) {
	for {
		t.d.pause(ctx, soonerThan(t.d.opts.CleanupInterval))
		if ctx.Err() != nil {
			return
		}
		names, err := t.d.store.Expiring(ctx, cleanupQueue)
		if err != nil {
			t.failed(ctx, "cleanup", err)
			continue
		}
		t.d.log.recovered("cleanup")
		each(ctx, names, func(name string) { t.cleanQueue(ctx, name) })
	}
}

// cleanQueue removes all of a queue whose time is over. A queue that fails is left for the next pass.
func (t *term) cleanQueue(ctx context.Context, name string) {
	for more := true; more && ctx.Err() == nil; {
		var err error
		if more, err = t.d.store.Cleanup(ctx, name, cleanupBatch); err != nil {
			t.failed(ctx, "cleanup", err)
			return
		}
	}
}
