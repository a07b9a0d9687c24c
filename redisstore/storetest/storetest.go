package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/dispatchkit/dispatch"
)

// Harness is what the suite needs of a store to test it. All three functions are called from several tests at once.
type Harness struct {
	// Open returns a store that holds nothing and shares nothing with any other, and whose time stands still. It lives
	// until the end of the test t, whose Cleanup closes it.
	Open func(t testing.TB) dispatch.Store

	// Advance moves the time of a store that Open returned, by a whole number of milliseconds. A negative d sets its
	// clock back, as the clock of a server may be.
	Advance func(t testing.TB, store dispatch.Store, d time.Duration)

	// Check looks for anything in a queue that must never be. Nothing else works on the queue meanwhile. A queue that
	// does not exist is in order.
	Check func(ctx context.Context, store dispatch.Store, queue string) error

	// Client returns another client of a store that Open returned, each of whose requests to the server goes through step:
	// that calls send, which has the server carry the request out, and says whether the answer is to get lost, so that the
	// client has to find its way without. Transition is the name of what the server does, such as "enqueue" or "settle",
	// as the design names them, or of a plain command. Nil leaves out the runs that need it.
	Client func(t testing.TB, store dispatch.Store, step func(transition string, send func()) (lost bool)) dispatch.Store
}

// testcase is one behaviour.
type testcase struct {
	name string
	run  func(e *env)
}

// groups are all cases, in the order of the facets of dispatch.Store.
var groups = []struct {
	name  string
	cases []testcase
}{
	{"Enqueue", enqueueCases},
	{"Names", nameCases},
	{"Derived", derivedCases},
	{"Windows", windowCases},
	{"Dedup", dedupCases},
	{"Claim", claimCases},
	{"RepeatedClaim", repeatedClaimCases},
	{"Limits", limitCases},
	{"Throttle", throttleCases},
	{"Age", ageCases},
	{"Capacity", capacityCases},
	{"Settle", settleCases},
	{"Fence", fenceCases},
	{"Extend", extendCases},
	{"Leases", leaseCases},
	{"Queues", queueCases},
	{"DeleteQueue", deleteQueueCases},
	{"Tasks", taskCases},
	{"Draining", drainingCases},
	{"Delete", deleteCases},
	{"Reschedule", rescheduleCases},
	{"RunTask", runTaskCases},
	{"Cancel", cancelCases},
	{"Edit", editCases},
	{"Replay", replayCases},
	{"Purge", purgeCases},
	{"Cleanup", cleanupCases},
	{"Wake", wakeCases},
	{"Listen", listenCases},
	{"Await", awaitCases},
	{"Workers", workerCases},
	{"Leadership", leadershipCases},
	{"Plan", planCases},
	{"Cron", cronCases},
	{"CronDue", dueEntryCases},
	{"CronAdvance", advanceCases},
}

// Run runs all cases, each in a store of its own, in parallel.
func Run(t *testing.T, h Harness) {
	for _, group := range groups {
		t.Run(group.name, func(t *testing.T) {
			t.Parallel()
			for _, c := range group.cases {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					e := newEnv(t, h)
					c.run(e)
					e.check()
				})
			}
		})
	}
}
