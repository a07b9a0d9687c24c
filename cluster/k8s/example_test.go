package k8s_test

import (
	"context"
	"fmt"

	"github.com/dispatchkit/dispatch/cluster"
	"github.com/dispatchkit/dispatch/cluster/k8s"
	"k8s.io/client-go/kubernetes/fake"
)

func ExampleNewLeaderElector() {
	client := fake.NewClientset() // in a pod: rest.InClusterConfig, then kubernetes.NewForConfig
	elector := k8s.NewLeaderElector(client, "jobs", "dispatch-leader")

	lost, err := elector.Acquire(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("leads")
	elector.Release()
	<-lost
	fmt.Println("leads no more")
	// Output:
	// leads
	// leads no more
}

func ExampleNewStore() {
	store := k8s.NewStore(fake.NewClientset(), "jobs", k8s.StoreOptions{})
	ctx := context.Background()
	worker := &cluster.Worker{ID: "w-1", Queues: []string{"mail"}, State: cluster.StateActive}
	if err := store.RegisterWorker(ctx, worker); err != nil {
		fmt.Println(err)
		return
	}
	workers, err := store.ListWorkers(ctx)
	fmt.Println(len(workers), workers[0].ID, workers[0].State, err)
	// Output: 1 w-1 active <nil>
}
