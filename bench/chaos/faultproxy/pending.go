package faultproxy

import "strings"

// verdict is what becomes of a request and its reply.
type verdict int

const (
	pass         verdict = iota
	loseReply            // the reply is swallowed, and the connection ends
	replaceReply         // the reply is swallowed, and an error answered
	answer               // the request is swallowed, and an error answered in its turn
	hangUp               // the request is swallowed, and the connection ends in its turn
)

// reaches says whether a request with that verdict reaches the server.
func (v verdict) reaches() bool { return v <= replaceReply }

// entry is a request that has not been answered yet.
type entry struct {
	verdict verdict
	err     []byte // to be answered, in RESP

	// topic is the word that confirms a subscription or its end, such as "psubscribe", and channels how many
	// confirmations are missing: negative if all that are subscribed to end. It is empty for other commands.
	topic    string
	channels int
}

// newEntry is the entry of a request that passes.
func newEntry(r Request) entry {
	switch r.Name {
	case "SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE":
		return entry{topic: strings.ToLower(r.Name), channels: len(r.Args) - 1}
	case "UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE":
		if len(r.Args) == 1 {
			return entry{topic: strings.ToLower(r.Name), channels: -1}
		}
		return entry{topic: strings.ToLower(r.Name), channels: len(r.Args) - 1}
	}
	return entry{}
}

// pending are the requests of a connection that wait for replies, oldest first, and what it is subscribed to: both are
// needed to tell an answer from a message.
type pending struct {
	entries    []entry
	pushes     bool            // the connection speaks RESP3, where a message cannot be taken for an answer
	subscribed map[string]bool // by the topic of the confirmation and the channel, such as "psubscribe news.*"
}

// add appends a request.
func (p *pending) add(e entry) { p.entries = append(p.entries, e) }

// oldest is the request that is answered next, nil if there is none.
func (p *pending) oldest() *entry {
	if len(p.entries) == 0 {
		return nil
	}
	return &p.entries[0]
}

// pop takes the oldest request out.
func (p *pending) pop() { p.entries = p.entries[1:] }

// match finds the request that r answers, nil for what answers none. whole says that nothing else will answer it; it has been
// taken out then.
func (p *pending) match(r reply) (e *entry, whole bool) {
	p.pushes = p.pushes || r.kind == '>'
	e = p.oldest()
	if p.mayBeMessage(r, e) {
		topic := string(r.words[0])
		p.note(topic, string(r.words[1]))
		switch {
		case e != nil && e.topic == topic:
			if p.confirm(e) {
				p.pop()
				return e, true
			}
			return e, false
		case r.kind == '>', isMessage(topic):
			return nil, false
		}
	}
	if r.kind == '|' || e == nil {
		return nil, false
	}
	p.pop()
	return e, true
}

// mayBeMessage says whether r can belong to a subscription: in RESP2 an array on a connection that has one, or asks for it.
func (p *pending) mayBeMessage(r reply, e *entry) bool {
	if r.kind == '*' && !p.pushes {
		return len(p.subscribed) > 0 || e != nil && e.topic != ""
	}
	return r.kind == '>'
}

// note keeps the list of what the connection is subscribed to.
func (p *pending) note(topic, channel string) {
	switch topic {
	case "subscribe", "psubscribe", "ssubscribe":
		if p.subscribed == nil {
			p.subscribed = map[string]bool{}
		}
		p.subscribed[topic+" "+channel] = true
	case "unsubscribe", "punsubscribe", "sunsubscribe":
		delete(p.subscribed, ending(topic)+" "+channel)
	}
}

// confirm counts one confirmation, and says whether it was the last one.
func (p *pending) confirm(e *entry) bool {
	if e.channels >= 0 {
		e.channels--
		return e.channels <= 0
	}
	for subscription := range p.subscribed {
		if strings.HasPrefix(subscription, ending(e.topic)+" ") {
			return false
		}
	}
	return true
}

// ending is the topic that "unsubscribe", "punsubscribe" or "sunsubscribe" ends.
func ending(topic string) string { return strings.Replace(topic, "un", "", 1) }

// isMessage says whether an array of RESP2 that begins with word comes unasked.
func isMessage(word string) bool {
	switch word {
	case "message", "pmessage", "smessage", "unsubscribe", "punsubscribe", "sunsubscribe":
		return true
	}
	return false
}
