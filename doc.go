// Package dispatch is a distributed worker framework: producers enqueue tasks into queues, and every process that runs a
// Dispatcher claims due tasks and delivers them, over HTTP to a URL or to a Go handler in the process. The processes
// share a store and nothing else; redisstore keeps it in Redis.
//
//	store, err := redisstore.Open(ctx, "redis://localhost:6379/0", redisstore.Options{})
//	d, err := dispatch.New(store, dispatch.Options{})
//	dispatch.HandleFunc(d, "email", func(ctx context.Context, e Email) error { return send(ctx, e) })
//	go d.Run(ctx) // claims and delivers until ctx ends, then drains
//
//	task, err := dispatch.NewTask("email", Email{To: "ann@example.com"})
//	id, err := d.Enqueue(ctx, task)
//	id, err = d.Enqueue(ctx, dispatch.Task{URL: "https://example.com/hook", Delay: time.Hour})
//
// # A task's way
//
//	        Enqueue                claim                  settle
//	          │                      │                      │
//	          ▼                      ▼                      ▼
//	(nothing) ──▶ waiting, with a ───▶ running, under a ──┬─▶ gone, or retained as succeeded
//	              due time             lease              ├─▶ gone, or retained as dead
//	                 ▲                                    │
//	                 └───── retry after a backoff ────────┤
//	                 └───── released, not counted ────────┘
//
// The files are named after the steps: enqueue.go, announce.go and wake.go (telling processes), claim.go, deliver.go,
// outcome.go (what an attempt's end means), settle.go, and sweep.go for leases whose worker never reported.
//
// # Guarantees
//
// A task that Enqueue has acknowledged is attempted at least once, until it succeeds, is exhausted or is deleted. Each
// attempt runs under a lease with a fencing token that rises; a report under a lease that is no longer current changes
// nothing. No task starts before it is due by the store's clock. Rate and concurrency of a queue hold over all processes.
//
// # What this does not promise
//
// Not exactly once: an attempt whose worker died or was cut off is repeated, and handlers and receivers must bear that. No
// order between tasks. No transaction with the caller's own database. A URL is called if it leads to a public address, or to what
// Options.Egress allows; with an HTTPClient of the caller's, wherever it points. What the store promises when it fails itself, its package says.
package dispatch
