package worker

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// defaultThreshold is how many exchanges in a row without a response open the breaker of a host.
	defaultThreshold = 10
	// slowProbe is how long the only probe of a host keeps others from being sent.
	slowProbe = 10 * time.Second
	// maxHosts bounds the hosts that are remembered because they did not answer, and maxHostName the bytes of a name: a
	// longer one leads nowhere, whatever becomes of it.
	maxHosts    = 4096
	maxHostName = 512
	// maxShed is the longest time after which a shed exchange comes back, and minShed the shortest.
	minShed, maxShed = time.Second, time.Minute
)

var errShed = errors.New("worker: nothing was sent: the host has not answered lately, and another request tries it already")

// breaker keeps a host that does not answer from holding every place of a process: while the host is silent, few
// exchanges try it, and all others are shed, which takes no time.
//
//	closed -- `after` exchanges in a row without a response --> open -- any response --> closed
//
// It has no cool-down. The next probe may go as soon as the youngest has ended, so a host that refuses connections is
// tried as often as ever: what fails has really been tried, and who counts attempts counts no guesses.
//
// A probe that hangs may be the fault of its own request, so it does not have the say for long: another may go when it has
// been out for slowProbe, and with each that is out that time doubles. A host that hangs holds few places (7 after ten
// minutes, 15 after a day), and one that hangs no more is found out in no more time than it hung. The request that
// follows a slow one would mostly be of the same kind, as those are the many that are shed; so another path of the host
// needs to wait only half as long.
//
// It remembers the hosts that have failed since they last answered, maxHosts of them at most. One more takes the place
// of one that has failed little, which at worst must fail `after` times again.
type breaker struct {
	after   int          // below 1 the breaker never opens
	tracked atomic.Int64 // len(hosts), for a look without the lock while all is well

	mu    sync.Mutex // held for a look at one host, never during an exchange
	hosts map[hostKey]*silentHost
}

// hostKey is whom an exchange is with. It is not one string, which would have to be made for every exchange.
type hostKey struct{ scheme, host, port string }

func hostOf(u *url.URL) hostKey {
	port := u.Port()
	switch {
	case port != "":
	case u.Scheme == "https":
		port = "443"
	default:
		port = "80"
	}
	return hostKey{u.Scheme, strings.ToLower(u.Hostname()), port}
}

// silentHost is a host that has failed since it last answered. breaker.mu guards it.
type silentHost struct {
	failures int    // exchanges that ended without a response since then
	probes   int    // how many are out
	youngest *probe // nil if it has ended
	shed     int    // exchanges that were shed; halved by each probe that fails, so that it follows the present
}

// probe is an exchange that began while the breaker of its host was open. Its turn is timed by contexts, as all is that
// bounds an exchange: they cost no goroutine, and nobody has to be asked for the time.
type probe struct {
	host *silentHost
	path string
	// A request for another path may follow when half has ended, and any when whole has. Both end with the probe.
	half, whole context.Context
	end         func()
}

// pass is the admission of one exchange, from enter to leave.
type pass struct {
	key   hostKey
	probe *probe // nil if the breaker was closed, or the exchange did not wait for its turn
}

// verdict is what an exchange has shown of its host.
type verdict int

const (
	nothing verdict = iota // nothing was sent, or it was broken off from this side
	silence
	answer
)

func verdictOf(r Result) verdict {
	switch {
	case r.Status > 0:
		return answer
	case r.Kind == KindTimeout, r.Kind == KindConnect, r.Kind == KindDNS, r.Kind == KindTLS:
		return silence
	}
	return nothing
}

// enter admits an exchange, which then must leave; or it is shed, and retryIn is when to come back. One that insists
// takes nobody's turn.
func (b *breaker) enter(key hostKey, path string, insist bool) (p pass, retryIn time.Duration) {
	p.key = key
	if b.tracked.Load() == 0 {
		return p, 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.hosts[key]
	switch {
	case h == nil || h.failures < b.after || insist:
		return p, 0
	case h.youngest == nil || h.youngest.mayFollow(path):
		p.probe = h.try(path)
		return p, 0
	}
	h.shed++
	return p, comeBack(h.shed)
}

// try begins a probe. breaker.mu is held.
func (h *silentHost) try(path string) *probe {
	const doublings = 12 // to 11 hours
	turn := slowProbe << min(h.probes, doublings)
	half, endHalf := context.WithTimeout(context.Background(), turn/2)
	whole, endWhole := context.WithTimeout(context.Background(), turn)
	h.probes++
	h.youngest = &probe{host: h, path: path, half: half, whole: whole, end: func() { endHalf(); endWhole() }}
	return h.youngest
}

// mayFollow says whether a request may be sent while p is out.
func (p *probe) mayFollow(path string) bool {
	return p.whole.Err() != nil || path != p.path && p.half.Err() != nil
}

// over ends a probe. breaker.mu is held.
func (p *probe) over() {
	p.end()
	p.host.probes--
	if p.host.youngest == p {
		p.host.youngest = nil // mayFollow would say the same, but the path holds the whole URL
	}
}

// comeBack is when the n-th exchange that was shed comes back. The more there are, the wider they are spread: ten
// thousand of them over half a minute.
func comeBack(n int) time.Duration {
	const step = 10 * time.Millisecond
	d := max(time.Duration(min(n, int(maxShed/step)))*step, 2*minShed)
	return d/2 + rand.N(d/2)
}

// leave ends an exchange that was admitted. The host may have been forgotten meanwhile, and be remembered anew.
func (b *breaker) leave(p pass, v verdict) {
	if p.probe == nil && (v == nothing || v == answer && b.tracked.Load() == 0) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.probe != nil {
		p.probe.over()
	}
	switch v {
	case answer:
		delete(b.hosts, p.key)
		b.tracked.Store(int64(len(b.hosts)))
	case silence:
		h := b.hosts[p.key]
		if h == nil {
			h = b.track(p.key)
		}
		h.failures++
		if p.probe != nil {
			h.shed /= 2
		}
	}
}

// track begins to remember a host; if it is not to be remembered, what is returned is forgotten at once. b.mu is held.
func (b *breaker) track(key hostKey) *silentHost {
	h := new(silentHost)
	if b.after < 1 || len(key.host) > maxHostName {
		return h
	}
	if len(b.hosts) >= maxHosts {
		b.forgetOne()
	}
	if b.hosts == nil {
		b.hosts = make(map[hostKey]*silentHost)
	}
	// The strings are parts of the whole URL, which may be long.
	b.hosts[hostKey{strings.Clone(key.scheme), strings.Clone(key.host), strings.Clone(key.port)}] = h
	b.tracked.Store(int64(len(b.hosts)))
	return h
}

// forgetOne makes room for a host: it looks at a few, wherever the map begins, and forgets the one that has failed
// least. So names that are made up, one for each request, push each other out and not those that fail all the time.
func (b *breaker) forgetOne() {
	const sample = 8
	var least hostKey
	seen := 0
	for key, h := range b.hosts {
		if seen == 0 || h.failures < b.hosts[least].failures {
			least = key
		}
		if seen++; seen == sample {
			break
		}
	}
	delete(b.hosts, least)
}
