// Package servers starts real Redis servers behind proxies that fail on demand.
//
//	Single      one server
//	Replicated  a primary and a replica
//	Cluster     three masters and three replicas, which announce the addresses of their proxies
//
// Each [Node] is one redis-server process with a [faultproxy.Proxy] in front of it. Processes never outlive the one that
// started them: see internal/redistest, which starts them.
//
// # Who talks to whom
//
// Clients go through the proxies. In a cluster the nodes announce the ports of their proxies, so that MOVED, ASK and the
// table of slots lead a client there too. The cluster bus is direct, and so is replication of a Replicated set. In a
// cluster a replica connects to the announced address, hence through the master's proxy, which recognises it and
// passes it on untouched by any fault: a network that fails between clients and a node does not make the nodes lose each
// other. To separate nodes from each other, pause one.
//
// # What this does not promise
//
// Nothing here survives a power failure or says anything about one. There is no Sentinel: Promote does by hand what
// it would do, and the address of the primary moves with it at once, which no real set-up achieves. A set that has been
// closed cannot be used again.
package servers
