package worker

import (
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
	// maxProbes is how many exchanges at once try a host whose breaker is open.
	maxProbes = 1
	// maxHosts bounds the hosts that are remembered because they did not answer, and maxHostName the bytes of a name: a
	// longer one leads nowhere, whatever becomes of it.
	maxHosts    = 4096
	maxHostName = 512
	// maxShed is the longest time after which a shed exchange comes back, and minShed the shortest.
	minShed, maxShed = time.Second, time.Minute
)

var errShed = errors.New("worker: nothing was sent: the host has not answered lately, and another request tries it already")

// breaker keeps a host that does not answer from holding every place of a process: while the host is silent, one
// exchange at a time tries it, and all others are shed, which takes no time.
//
//	closed -- `after` exchanges in a row without a response --> open -- any response --> closed
//
// It has no cool-down and so no clock. A host that refuses connections is tried as often as ever, because each probe is
// over at once; a host that hangs takes one place instead of all. So what fails has really been tried, and who counts
// attempts counts no guesses.
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
	failures int // exchanges that ended without a response since then
	probes   int // running exchanges that began while the breaker was open
	shed     int // exchanges that were shed; halved by each probe that fails, so that it follows the present
}

// pass is the admission of one exchange, from enter to leave.
type pass struct {
	key   hostKey
	probe *silentHost // whose probe the exchange is; nil if the breaker was closed
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

// enter admits an exchange, which then must leave; or it is shed, and retryIn is when to come back.
func (b *breaker) enter(key hostKey, insist bool) (p pass, retryIn time.Duration) {
	p.key = key
	if b.tracked.Load() == 0 {
		return p, 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.hosts[key]
	switch {
	case h == nil || h.failures < b.after:
		return p, 0
	case h.probes < maxProbes || insist:
		h.probes++
		p.probe = h
		return p, 0
	}
	h.shed++
	return p, comeBack(h.shed)
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
		p.probe.probes--
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
