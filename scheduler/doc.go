// Package scheduler decides which queue a process claims from next, and how many tasks. It is pure: it does no I/O,
// starts no goroutine, reads no clock and takes no lock. Every method that needs the time is given it, and the caller
// lets one goroutine in at a time.
//
// A process has places for deliveries. A queue is eligible when it has a task due, as far as is known, and its limits
// allow one more. Next grants an eligible queue a number of tasks; the caller claims them from the store and reports with
// Claimed what it got, and with Done when a lease has ended:
//
//	s := scheduler.New(scheduler.Options{Places: 64, ClaimCap: 100})
//	s.Due("mail", now, now)
//	grant, ok := s.Next(now)                                    // {mail 64} true
//	s.Claimed("mail", scheduler.Claim{Leased: 3}, now)          // the store had three
//	s.Done("mail", 3, now)                                      // and they are settled
//
// A queue is in one of five states:
//
//	         Due                 its time comes               Next
//	idle ──────────▶ waiting ─────────────────────▶ ready ──────────▶ claiming
//	  ▲                 ▲                             ▲                   │
//	  └─────────────────┴──── blocked ◀───────────────┴───── Claimed ─────┘
//	   nothing known     later   │ Done                now
//
// Ready queues take turns by stride scheduling: each has a pass that grows by the tasks it got, divided by its weight, and
// the lowest pass is next. A queue that was away starts at the pass of the others, so nobody saves up turns.
//
// # What this does not promise
//
// The limits of a queue hold over all processes, and only the store knows them all. What is decided here is a prediction
// that spares claims which cannot succeed; the store's answer corrects it.
package scheduler
