// Package faultproxy is a TCP proxy for Redis that fails as networks do.
//
// A [Proxy] stands between clients and one server. It can cut connections, refuse new ones, swallow everything (a black
// hole), swallow replies only (half open), delay and throttle. It also reads the protocol, RESP, far enough to know which
// reply answers which request, so that one command in the middle of a pipeline can be hit: [Proxy.Lose] loses its reply
// after the command ran, or the request before it reaches the server, or answers with an error of Redis instead.
//
// # How replies are counted
//
// Redis answers the requests of a connection in order. So each request that passes is written into a list, and each reply
// takes the oldest entry. Three things are no answer to a request: push messages of RESP3, messages of a subscription in
// RESP2, and attributes, which belong to the reply behind them. A subscription is confirmed once per channel, in RESP3 by
// push messages: its entry waits for all of them.
//
// # Replicas
//
// The nodes of a cluster replicate from the address that a node announces, which is its proxy's. A connection that says
// REPLCONF, PSYNC or SYNC is a replica's: from there on it is passed on byte by byte, and no fault touches it. A fault of
// the proxy is thus one between the clients and the server. To let a replica fall behind, pause its process.
//
// # What this does not promise
//
// The kernel acknowledges what the proxy swallows: a sender sees no loss of packets, only silence. What is on its way when a
// fault begins may still arrive. Commands behind one whose reply was lost have usually run, but need not have. A replica that
// connects during a fault is treated as a client until it has said that it is none, so its first PING may be hit. CLIENT
// REPLY OFF and SKIP, streamed RESP3 types and TLS are not understood; what is no RESP gets its connection cut. A client that
// closes one half of its connection has closed it. Replies that a client does not read are kept without bound. The port is checked, not reserved, while connections are refused.
package faultproxy
