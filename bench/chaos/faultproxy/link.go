package faultproxy

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// link is one connection of a client and the one to the server that it stands for. Four goroutines carry it: two read,
// and give what they read to two lanes that write.
type link struct {
	proxy              *Proxy
	client, server     net.Conn // server is nil if the link began in a black hole
	toClient, toServer *lane

	replica atomic.Bool // the client is one: see the package's documentation
	once    sync.Once
	done    chan struct{} // closed by sever

	mu      sync.Mutex // held from the match of a reply until it is in its lane, so that replies keep their order
	pending pending
	args    [][]byte // of the request at hand
	ending  bool     // the last packet is in a lane: what comes now is swallowed
}

func newLink(p *Proxy, client, server net.Conn) *link {
	k := &link{proxy: p, client: client, server: server, done: make(chan struct{})}
	k.toClient = newLane(client, k.done, &p.downwards)
	k.toServer = newLane(server, k.done, &p.upwards)
	return k
}

// sever ends the link at once: both sides find their connection reset.
func (k *link) sever() {
	k.once.Do(func() {
		close(k.done)
		reset(k.client)
		if k.server != nil {
			reset(k.server)
		}
	})
}

// reset closes a connection so that the other side finds it reset.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	c.Close()
}

// carry owns the goroutines of the link, and returns when it and they have ended.
func (k *link) carry() {
	var group sync.WaitGroup
	group.Go(func() { k.deliver(k.toServer) })
	group.Go(func() { k.deliver(k.toClient) })
	group.Go(func() { k.read(k.client, k.toServer, k.takeRequests, k.hidesRequests) })
	group.Go(func() { k.read(k.server, k.toClient, k.takeReplies, k.hidesReplies) })
	group.Wait()
}

// deliver runs a lane. A link ends with either of its lanes.
func (k *link) deliver(l *lane) {
	defer k.sever()
	l.run()
}

// read carries what arrives on one side to the other one, until the sender ends the stream or nobody can tell any more
// what it means. The end of a stream is not seen through a black hole either.
func (k *link) read(from net.Conn, to *lane, handle func(*intake, time.Time) error, hides func() bool) {
	in := &intake{from: from}
	for {
		if err := in.more(); err != nil {
			if hides() {
				<-k.done
			}
			to.send(packet{last: true})
			return
		}
		if err := handle(in, time.Now()); err != nil {
			k.sever()
			return
		}
	}
}

func (k *link) hidesRequests() bool {
	return k.proxy.weather().dark && !k.replica.Load()
}

func (k *link) hidesReplies() bool {
	w := k.proxy.weather()
	return (w.dark || w.mute) && !k.replica.Load()
}

// takeRequests handles what a client sent.
func (k *link) takeRequests(in *intake, now time.Time) error {
	if k.replica.Load() {
		k.toServer.send(packet{data: clone(in.all()), free: true})
		return nil
	}
	w := k.proxy.weather()
	k.mu.Lock()
	defer k.mu.Unlock()
	if w.dark || k.ending {
		in.all()
		return nil
	}
	out, err := k.filterRequests(in)
	if len(out) > 0 {
		k.toServer.send(packet{due: now.Add(w.delay), data: out})
	}
	k.answer(nil, now.Add(w.delay))
	return err
}

// filterRequests takes all whole requests, and returns those that go to the server. k.mu must be held.
func (k *link) filterRequests(in *intake) (out []byte, err error) {
	for {
		args, n, err := scanRequest(in.rest(), k.args[:0])
		if n == 0 || err != nil {
			return out, err
		}
		k.args = args
		raw := in.take(n)
		if len(args) == 0 {
			continue // Redis does not answer it either
		}
		r := newRequest(args)
		if r.ofReplica() {
			k.replica.Store(true)
			return append(append(out, raw...), in.all()...), nil
		}
		e := k.proxy.judge.try(r)
		k.pending.add(e)
		k.proxy.stats.requests.Add(1)
		if e.verdict.reaches() {
			out = append(out, raw...)
			continue
		}
		k.proxy.stats.lostRequests.Add(1)
		if e.verdict == hangUp {
			in.all()
			return out, nil
		}
	}
}

// takeReplies handles what the server sent.
func (k *link) takeReplies(in *intake, now time.Time) error {
	if k.replica.Load() {
		k.toClient.send(packet{data: clone(in.all()), free: true})
		return nil
	}
	w := k.proxy.weather()
	k.mu.Lock()
	defer k.mu.Unlock()
	if w.dark || w.mute || k.ending {
		in.all()
		return nil
	}
	out, err := k.filterReplies(in)
	k.answer(out, now.Add(w.delay))
	return err
}

// filterReplies takes all whole replies, and returns what the client sees of them. k.mu must be held.
func (k *link) filterReplies(in *intake) (out []byte, err error) {
	for {
		r, err := scanReply(in.rest())
		if r.size == 0 || err != nil {
			return out, err
		}
		raw := in.take(r.size)
		e, whole := k.pending.match(r)
		switch {
		case e == nil || e.verdict == pass:
			out = append(out, raw...)
		case e.verdict == loseReply:
			k.proxy.stats.lostReplies.Add(1)
			k.pending.entries = []entry{{verdict: hangUp}}
			in.all()
			return out, nil
		case whole:
			k.proxy.stats.lostReplies.Add(1)
			out = append(out, e.err...)
		}
		if whole {
			out = k.unsent(out)
		}
	}
}

// unsent appends the answers to requests that never went to the server and are next. k.mu must be held.
func (k *link) unsent(out []byte) []byte {
	for e := k.pending.oldest(); e != nil && e.verdict == answer; e = k.pending.oldest() {
		out = append(out, e.err...)
		k.pending.pop()
	}
	return out
}

// answer sends the client what it may see, and the end of the link if it is time for it. k.mu must be held.
func (k *link) answer(out []byte, due time.Time) {
	out = k.unsent(out)
	if e := k.pending.oldest(); e != nil && e.verdict == hangUp {
		k.ending = true
	}
	if len(out) > 0 || k.ending {
		k.toClient.send(packet{due: due, data: out, last: k.ending})
	}
}

func clone(b []byte) []byte { return append([]byte(nil), b...) }
