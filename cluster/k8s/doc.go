// Package k8s lets a fleet that runs on Kubernetes use Kubernetes for what is about processes: who leads
// (LeaderElector) and who is alive (Store). The tasks stay in Redis. Each works without the other.
//
// The package is a module of its own, so that who does not use it compiles no client-go.
//
//	elector := k8s.NewLeaderElector(client, "jobs", "dispatch-leader")
//	d, err := dispatch.New(store, dispatch.Options{Leader: elector})
//
// docs/kubernetes.md has a deployment and the permissions that it needs.
//
// # Time
//
// The API server lends nobody its clock, and machines' clocks differ. So no instant that another machine wrote is ever
// compared with the local clock. As client-go's leader election does, an observer notes when it saw a record change
// last, by its own monotonic clock, and judges by how long that is ago. An observer that is new has seen nothing change
// yet: it waits for the whole lease, or the whole threshold, before it takes anybody for gone.
//
// # What this does not promise
//
// It does not promise that there is a single leader at any instant, and client-go says of itself that it does not
// either. A leader's process may be frozen between a look at its clock and what it does next; a clock may run slow. It
// is the term in the store of the tasks that fences a leader that is none any more: the elector only sees to it that two
// leaders are rare and short.
//
// It does not promise that a worker is found dead at the threshold: it takes until the leader's next look after that,
// and one more threshold when the leader is new. A worker is never found dead too early for reasons of clocks.
//
// Leadership and a row are two objects. A call that needs both writes one after the other, so between the two writes a
// reader may find a leader without a row.
package k8s
