package scheduler_test

import (
	"fmt"
	"time"

	"github.com/dispatchkit/dispatch/scheduler"
)

// A claim loop in a time of its own: five tasks of a queue that allows two per second, and two at once after a pause.
func Example() {
	s := scheduler.New(scheduler.Options{Places: 10, ClaimCap: 100})
	start := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	now, tasks := start, 5

	s.SetLimits("mail", scheduler.Limits{Rate: 2, Burst: 2}, now)
	s.Due("mail", now, now)
	for {
		grant, ok := s.Next(now)
		if !ok {
			at, ok := s.NextAt(now)
			if !ok {
				break // a program waits for a message here
			}
			now = at // and for a timer here
			continue
		}

		// A program asks the store; this one has the tasks at hand.
		leased := min(grant.Budget, tasks)
		tasks -= leased
		claim := scheduler.Claim{Leased: leased}
		if tasks > 0 {
			claim.Next = now
		}
		s.Claimed(grant.Queue, claim, now)
		fmt.Printf("%5v: %d of %s\n", now.Sub(start), leased, grant.Queue)
		s.Done(grant.Queue, leased, now)
	}
	// Output:
	//    0s: 2 of mail
	// 500ms: 1 of mail
	//    1s: 1 of mail
	//  1.5s: 1 of mail
}
