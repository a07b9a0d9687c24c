// Package worker does the work of one process: it runs functions on a bounded number of goroutines (Pool) and sends
// HTTP requests to receivers that may be slow, broken or hostile (Deliverer). It knows no Task, no queue and no store.
//
// A Deliverer makes one exchange per call and says how it ended in three words that a caller can act on: a status, a
// Kind and a short piece of the response.
//
//	d := worker.NewDeliverer(worker.Options{})
//	defer d.Close()
//	res := d.Deliver(ctx, worker.Request{URL: "https://example.com/hook", Body: payload})
//	if res.Kind != "" {
//		// try again later
//	}
//
// # One call, one request
//
// Who counts attempts must know how often a receiver was asked. By itself net/http asks again when a reused connection
// breaks and the request looks idempotent to it, and it follows redirects. A Deliverer does neither: a 3xx is an
// answer like any other that is not 2xx, and a request is sent again only when the receiver cannot have acted on it,
// because nothing was written yet or because HTTP/2 says that it was refused unprocessed.
//
// # Hostile receivers
//
// The context bounds the whole exchange, the body of the response included; nothing else does, so an attempt may take
// a day. Of a response at most 64 KiB of header and 64 KiB of body are read, nothing is decompressed, and 1 KiB is
// kept. No environment variable can put a proxy in the way. An error never holds the URL's query or user information
// or the value of a header, not even when the receiver sends them back.
//
// # Hosts that do not answer
//
// A host that hangs would in time hold every place of a process. So after Options.BreakerThreshold exchanges in a row that
// got no response (KindTimeout, KindConnect, KindDNS, KindTLS) its breaker opens: one request at a time tries the host,
// and others are shed with KindShed and the time after which to come back. Any response, a 5xx too, closes the breaker.
// There is no pause between two probes: a host that refuses connections is tried as fast as it refuses. While a probe
// hangs, another is sent after 10 s, or 5 s if its path is another one, and the next ones after twice the time each: a
// host that hangs holds few places, and a single request that hangs does not stand for its host. What began before the
// breaker opened runs on. An exchange that its caller cancels, or whose request cannot be sent, says nothing of the
// host. A deadline that passes counts however short it was: it is the caller's to leave a host time to answer.
//
// A host is a scheme, a name or address as the URL has it, in lower case, and a port. Only hosts that have failed since
// they last answered are remembered, 4096 of them at most; beyond, one that has failed little is forgotten.
//
// # Where requests may go
//
// Who chooses a URL chooses what this process connects to, and it stands where others do not: next to databases, to
// services without a password, to the metadata service of its cloud. So by default a Deliverer reaches public
// addresses only. Egress changes that. It is asked at each dial about the address itself, so that no spelling of a host
// and no answer of the DNS goes around it, and what it refuses is an *EgressError that says what would allow it.
//
// # What this does not promise
//
//   - That a request that failed was not acted on: after KindTimeout, KindConnect or KindCancelled the receiver may
//     have done the work. Deliveries are at least once.
//   - That one call is one request when the Client is the caller's own. A GET, or any other request that HTTP calls
//     idempotent, without a body and over https may then be repeated by net/http on a broken connection; and a
//     Transport of one's own may do what it likes.
//   - That one call is one request when an HTTP/2 receiver refuses a stream (REFUSED_STREAM, PROTOCOL_ERROR) that it
//     has processed all the same: net/http believes it and asks again, up to six times.
//   - That a host holds no more than a few places: one that sends the header of a response and then hangs has answered, and
//     before the breaker opens as many requests as the caller makes may wait for a host.
//   - That a connection is tried a second time: a request that the receiver meets with a closed connection fails with
//     KindConnect, and the next attempt is the caller's to make.
//   - That requests reach public addresses only when the Client is the caller's own, unless its transport comes from
//     NewTransport; and when Egress.Proxy is set, the guard sees the address of the proxy and nothing behind it.
//   - That an address with a public number is not one's own: what a cloud or a network routes inward beyond the ranges
//     that IANA lists, a NAT64 prefix of its own for example, must be named in Egress.Deny.
//   - That a connection ends when its address becomes forbidden: the guard is asked when it is made, and its Egress
//     never changes.
//   - An order: Pool starts the items of a lane in the order in which they were added, but they run at once and end as they
//     like.
package worker
