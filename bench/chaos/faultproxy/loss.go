package faultproxy

import "sync"

// Loss says which requests are lost, and how. The zero value loses nothing.
type Loss struct {
	// Reply lets the command run and loses what the server answers. Otherwise the request does not reach the server. Either
	// way the connection ends there, after the replies to all commands before it: a client could not tell the later
	// replies apart. Unless Error is set.
	Reply bool

	// Match names the requests; nil matches none. It is called for one request at a time, for those of all connections, and
	// must not call the proxy. It may keep state, but nothing of the request.
	Match func(Request) bool

	// Times is how many requests are hit, then the loss is over. 0 means until it is changed.
	Times int

	// Error is answered in place of the reply, and the connection goes on. It is what Redis writes after the minus sign,
	// such as "LOADING Redis is loading the dataset in memory", and has no line end.
	Error string
}

// entry is what becomes of a request that is hit.
func (l Loss) entry(r Request) entry {
	e := newEntry(r)
	switch {
	case l.Reply && l.Error == "":
		e.verdict = loseReply
	case l.Reply:
		e.verdict = replaceReply
	case l.Error == "":
		e.verdict = hangUp
	default:
		e.verdict = answer
	}
	if l.Error != "" {
		e.err = []byte("-" + l.Error + "\r\n")
	}
	return e
}

// judge decides about requests, one at a time.
type judge struct {
	mu   sync.Mutex
	loss Loss
}

func (j *judge) set(l Loss) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.loss = l
}

// try decides about one request.
func (j *judge) try(r Request) entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.loss.Match == nil || !j.loss.Match(r) {
		return newEntry(r)
	}
	e := j.loss.entry(r)
	if j.loss.Times > 0 {
		if j.loss.Times--; j.loss.Times == 0 {
			j.loss = Loss{}
		}
	}
	return e
}
