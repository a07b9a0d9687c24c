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
// # Where a queue stands
//
// A queue is in exactly one of five places:
//
//	        Due               its instant comes
//	idle ─────────► waiting ────────────────────► ready
//	                                              │   ▲
//	                                         Next │   │ more is due
//	                                              ▼   │
//	idle, waiting or blocked ◄─────────────────  claiming
//	                            Claimed
//
//	idle      nothing is known to be due
//	waiting   for the instant when a task is due, Claim.Retry is over and there is a token, whichever is last
//	ready     may be claimed at once, and waits for its turn and for a place of the process
//	claiming  its one claim is in flight
//	blocked   has as many leases as its concurrency limit allows; Done makes it waiting or ready
//
// What is heard of a queue while its claim is in flight is kept until Claimed, because the claim may have run before it
// happened: a task that is stored meanwhile is not lost, and neither is a lease that ends.
//
// # Whose turn it is
//
// Ready queues take turns by stride scheduling. Each has a pass, which grows by the tasks that it got, divided by its
// weight; the lowest goes first. A queue that was away comes back where the others are: so a quiet queue is served at
// once beside a busy one, and cannot save up turns.
//
// # Prefetch
//
// A place stands empty from the end of its task until a claim has brought another. Where tasks take microseconds, that
// is most of the time. So the process may hold more tasks than it has places, up to twice as many, as far as the pace
// at which tasks end calls for it. Only queues without limits are prefetched, and each only at its turn.
//
// # What this does not promise
//
//   - That a claim succeeds. A queue's limits hold over all processes, and only the store knows them all; the scheduler
//     spares claims that cannot succeed as far as this process knows, and the store's answer corrects it.
//   - The last per cent of a rate with a small burst. Tokens are charged when a claim is answered, not when the store
//     makes it; so a queue with a Burst of 1 loses the length of a claim between two tasks.
//   - An order among tasks, or shares by weight while there are places for all: weights divide what is scarce.
//   - That everything due is known. A task that nobody tells it about does not exist; who may have missed a message
//     looks at the store and calls Due.
package scheduler
