package main

import (
	"context"
	"fmt"
	"time"
)

const (
	places   = 16 // how many tasks run at once in the one process of this example
	contract = 4  // how many of a tenant may run at once, on all processes together
	patience = 100 * time.Second
	slowness = 500 * time.Millisecond
	backlog  = places * int(patience/slowness) // slow tasks: more than all places can run while patience lasts
)

// silence serves all tenants but the noisy one, which has nothing to do.
func silence(ctx context.Context, ts tenants, w *worker) error {
	started := w.expectQuiet(ts.n - 1)
	if err := ts.sendQuiet(ctx); err != nil {
		return err
	}
	waits, err := receive(ctx, started)
	if err != nil {
		return err
	}
	report("nobody is noisy", waits)
	return nil
}

// noise does the same while the noisy tenant is at work and may run so many tasks at once; 0 is no limit, and so all the
// places that a process gives to one queue. It makes noise until all others are served.
func noise(ctx context.Context, ts tenants, w *worker, limit int) error {
	if err := ts.setLimit(ctx, noisy, limit); err != nil {
		return err
	}
	if err := ts.makeNoise(ctx, w); err != nil {
		return err
	}
	started := w.expectQuiet(ts.n - 1)
	if err := ts.sendQuiet(ctx); err != nil {
		return err
	}
	waits, err := receive(ctx, started)
	if err != nil {
		return err
	}
	if err := ts.endNoise(ctx); err != nil {
		return err
	}
	peak := w.loudest()
	report(fmt.Sprintf("%s runs %d slow tasks at once", noisy, peak), waits)
	if limit > 0 && peak > limit {
		return fmt.Errorf("%s ran %d tasks at once, more than %d", noisy, peak, limit)
	}
	return nil
}

// report prints how long the tasks of the quiet tenants waited, from Enqueue to their handler. The waits are sorted.
func report(what string, waits []time.Duration) {
	percentile := func(n int) float64 { return float64(waits[(len(waits)-1)*n/100].Microseconds()) / 1000 }
	fmt.Printf("%-43s the others wait %5.1f ms (median), %6.1f ms (p99)\n", what+":", percentile(50), percentile(99))
}
