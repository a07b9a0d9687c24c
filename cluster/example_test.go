package cluster_test

import (
	"fmt"

	"github.com/dispatchkit/dispatch/cluster"
)

// Every worker that holds the plan finds where it stands by itself. A queue with a backlog has more than one home.
func ExamplePlan() {
	plan := cluster.NewPlan([]*cluster.Worker{
		{ID: "w-a", State: cluster.StateActive, Concurrency: 10},
		{ID: "w-b", State: cluster.StateActive, Concurrency: 30},
		{ID: "w-c", State: cluster.StateDraining, Concurrency: 30},
	})
	plan.Spread = map[string]int{"hooks": 2}
	for _, queue := range []string{"mail", "hooks"} {
		for _, id := range []cluster.WorkerID{"w-a", "w-b"} {
			s := plan.Standing(queue, id)
			fmt.Printf("%s %s: home %v, share %.2f\n", queue, id, s.Home(), s.Share)
		}
	}
	// Output:
	// mail w-a: home false, share 0.25
	// mail w-b: home true, share 1.00
	// hooks w-a: home true, share 0.25
	// hooks w-b: home true, share 0.75
}
