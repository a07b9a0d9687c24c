// Package cluster knows the processes that run Dispatch. It knows no Task.
//
// Today it holds the identity of a worker process. Records of workers, heartbeats and leadership build on it.
//
// # What this does not promise
//
// A WorkerID says who holds a lease; it is no proof of being alive, and it is not what fences a write. The fencing
// token of the lease does that.
package cluster
