// Package scheduler is the pure core of one process's claim loop: it says from which queue to claim now, and how many
// tasks. It does no I/O, starts no goroutine, reads no clock and takes no lock: its callers take turns, and tell it
// what time it is.
//
// A process has places, in which it works on tasks, and queues that share them. Due says that a queue has something.
// Next grants a claim; the caller makes it, answers with Claimed, and says with Done when leases have ended:
//
//	s := scheduler.New(scheduler.Options{Places: 64, ClaimCap: 100})
//	s.SetLimits("mail", scheduler.Limits{Rate: 10, Burst: 20}, now)
//	s.Due("mail", now, now)
//
//	s.Next(now)    // {mail 20}, true: as many as the bucket has tokens
//	s.Claimed("mail", scheduler.Claim{Leased: 20, Next: now}, now)
//	s.Next(now)    // {}, false: there is more, and no token for it
//	s.NextAt(now)  // now + 100ms, true: then there is one
//	s.Done("mail", 20, now)
//
// Tasks that are given back without a beginning have ended with Returned.
//
// # Where a queue stands
//
// A queue is in exactly one of six places:
//
//	        Due               its instant comes          others have let go
//	idle ─────────► waiting ────────────────────► ready ◄──────────────────► full
//	                                              │   ▲    it is its turn
//	                                         Next │   │ more is due
//	                                              ▼   │
//	idle, waiting or blocked ◄─────────────────  claiming
//	                            Claimed
//
//	idle      nothing is known to be due
//	waiting   for the instant when a task is due, Claim.Retry is over and there is a token, whichever is last
//	ready     may be claimed at once, and waits for its turn and for a place of the process
//	full      is as ready, and has as many of the process's places as it may have: others go first
//	claiming  its one claim is in flight
//	blocked   has as many leases as its concurrency limit allows, or more; Done makes it waiting or ready
//
// What is heard of a queue while its claim is in flight is kept until Claimed, because the claim may have run before it
// happened: a task that is stored meanwhile is not lost, and neither is a lease that ends. Reset drops what claims have said,
// that of the one in flight as well.
//
// # Whose turn it is
//
// Ready queues take turns by stride scheduling. Each has a pass, which grows by the tasks that it got, divided by its
// weight; the lowest goes first. A queue that was away comes back where the others are: so a quiet queue is served at
// once beside a busy one, and cannot save up turns.
//
// # Whose places they are
//
// Attempts may hang. So in a process with several queues (Options.Shared) none may have all places: each may have at most
// three for each that it leaves free, and the last is for one that has none. Parts tells how many of each queue's leases
// may be worked on at once. The places that are so left free are the price: one busy queue has 48 of 64.
//
// Among queues that have as much as they may, turns cannot divide the places. There a heavier queue that wants more lowers
// what lighter ones may have, down to one place for each that they leave free; so by weight up to three to one.
//
// # Prefetch
//
// A place stands empty from the end of its task until a claim has brought another. Where tasks take microseconds, that
// is most of the time. So the process may hold more tasks than it has places, up to twice as many, as far as the pace
// at which tasks end calls for it. Only queues without limits are prefetched, or with a concurrency limit that is far: at least
// four times the places, and not met for a minute. Each is so only at its turn. What is held
// beyond the places, or beyond a queue's part of them, takes none: it waits until its queue may take one, and a queue that
// comes meanwhile finds the free places as they are.
//
// # What this does not promise
//
//   - That a claim succeeds. A queue's limits hold over all processes, and only the store knows them all; the scheduler
//     spares claims that cannot succeed as far as this process knows, and the store's answer corrects it.
//   - The last per cent of a rate with a small burst. Tokens are charged when a claim is answered, not when the store
//     makes it; so a queue with a Burst of 1 loses the length of a claim between two tasks.
//   - An order among tasks, or shares by weight while there are places for all: weights divide what is scarce.
//   - A place for every queue. Queues that come one after another, and hang, each leave at least a quarter of what they have
//     found: of 64 places three leave one, and the fourth takes it.
//   - That everything due is known. A task that nobody tells it about does not exist; who may have missed a message
//     looks at the store and calls Due.
package scheduler
