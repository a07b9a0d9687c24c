// Package cluster knows the processes that run Dispatch, and of each the queues that it serves. It knows no Task, and does
// not know where the registry is kept.
//
//	Store     the registry: a row for each worker, and which of them leads. Back ends implement it
//	Member    one worker's life in a registry: it registers, beats, drains, leaves, and knows when it is taken for dead
//	Plan      the leader's hint of which workers look at which queue first
//	Standing  what one worker makes of a Plan for one queue
//
// # A worker's life
//
//	              Run              Drain               Leave
//	NewMember ──────────► active ──────────► draining ──────────► gone
//	                       │  ▲               │  ▲
//	  silent for Threshold ▼  │ its next beat ▼  │ registers it again
//	                       dead               dead
//
// A beat is one write, whatever the worker runs. Nobody hears of a worker that stops in good order again: its row is
// gone. One that dies is silent; after Threshold the leader marks it dead and gives away what it held.
//
// A Member counts from the start of its last good beat, and the registry from when it wrote it. So where all have the same
// Threshold, a worker knows that it is stale, and tells its process, before others find it dead. Who wants to mark others
// dead has to be heard itself: where it could not reach the registry, the others could not either, and their silence says
// nothing. Member.SteadySince is for that.
//
// # Who looks at a queue first
//
// With a Plan, each worker finds by weighted rendezvous hashing, and without asking anybody, which workers are at home with
// a queue: one, or as many as Plan.Spread says. Those claim at once and the others a little later, so that one task does
// not cost a claim of every process. When a worker leaves, the queues that it was at home with are spread over the others,
// and no other queue moves.
//
// # Goroutines
//
// Member.Run is the only thing that starts goroutines, besides Member.Leave: one for each call of the store, one at a
// time. It waits for them, so none is left when it returns, except for a call that ignores the end of its context.
//
// # What this does not promise
//
//   - That a worker whose row is active is alive, or that one that is marked dead is not. It was heard of, or was not; a
//     process that stands still finds out when it goes on. What it does until then is fenced by the token of each
//     lease, not by the registry and not by Stale. A WorkerID says who holds a lease and fences nothing.
//   - That Stale comes in time where the clock of the process stands still with it, as in a virtual machine that is
//     paused together with its clock.
//   - That a row is gone after Leave. A registration whose context had ended may still be on its way to the registry. The
//     row is then found dead, as that of any worker that is silent.
//   - That workers hold the same Plan. It is never needed for correctness: with different ones, a task costs a claim more
//     or starts a little later.
//   - An exact division. The hash gives each worker its part of many queues; of a few, one may have none.
package cluster
