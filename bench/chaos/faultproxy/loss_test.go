package faultproxy

import (
	"testing"
)

const pipeline = "*2\r\n$4\r\nINCR\r\n$1\r\na\r\n" + "*2\r\n$4\r\nINCR\r\n$1\r\nb\r\n" + "*2\r\n$4\r\nINCR\r\n$1\r\nc\r\n"

func TestLostReplyInAPipeline(t *testing.T) {
	t.Parallel()
	e := newEnds(t)
	e.Lose(Loss{Reply: true, Match: named("INCR b")})
	client, server := e.connect()
	client.send(pipeline)
	server.gets(pipeline)
	server.send(":1\r\n:2\r\n:3\r\n")
	client.gets(":1\r\n")
	client.ended()
	server.ended()
	if got, want := e.Stats(), (Stats{Dials: 1, Requests: 3, LostReplies: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// Replies come one by one and in pieces: the ones before the lost one are delivered, whenever they come.
func TestLostReplyWaitsForEarlierOnes(t *testing.T) {
	t.Parallel()
	e := newEnds(t)
	e.Lose(Loss{Reply: true, Match: named("INCR b")})
	client, server := e.connect()
	client.send(pipeline)
	server.gets(pipeline)
	client.getsNothing()
	server.send("$5\r\nhe")
	server.send("llo\r\n:")
	client.gets("$5\r\nhello\r\n")
	client.getsNothing()
	server.send("2\r\n")
	client.ended()
}

func TestLostRequestInAPipeline(t *testing.T) {
	t.Parallel()
	e := newEnds(t)
	e.Lose(Loss{Match: named("INCR b")})
	client, server := e.connect()
	client.send(pipeline)
	server.gets(cmd("INCR a"))
	server.getsNothing()
	client.getsNothing()
	server.send(":1\r\n")
	client.gets(":1\r\n")
	client.ended()
	server.ended()
	if got, want := e.Stats(), (Stats{Dials: 1, Requests: 2, LostRequests: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestLostRequestAlone(t *testing.T) {
	t.Parallel()
	e := newEnds(t)
	e.Lose(Loss{Match: named("INCR a")})
	client, server := e.connect()
	client.send(pipeline)
	client.ended()
	server.ended()
}

func TestErrorInsteadOfARequest(t *testing.T) {
	t.Parallel()
	e := newEnds(t)
	e.Lose(Loss{Match: named("INCR b"), Error: "LOADING soon"})
	client, server := e.connect()
	client.send(pipeline)
	server.gets(cmds("INCR a", "INCR c"))
	client.getsNothing() // its turn comes behind the answer to the first one
	server.send(":1\r\n")
	client.gets(":1\r\n-LOADING soon\r\n")
	server.send(":3\r\n")
	client.gets(":3\r\n")
	client.send(cmd("INCR b"))
	client.gets("-LOADING soon\r\n")
	e.Lose(Loss{})
	client.send(cmd("INCR b"))
	server.gets(cmd("INCR b"))
	if got, want := e.Stats(), (Stats{Dials: 1, Requests: 5, LostRequests: 2}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestErrorInsteadOfAReply(t *testing.T) {
	t.Parallel()
	e := newEnds(t)
	e.Lose(Loss{Reply: true, Match: named("INCR b"), Error: "ERR lost"})
	client, server := e.connect()
	client.send(pipeline)
	server.gets(pipeline)
	server.send(":1\r\n*2\r\n$1\r\nx\r\n*1\r\n:7\r\n:3\r\n")
	client.gets(":1\r\n-ERR lost\r\n:3\r\n")
	if got, want := e.Stats(), (Stats{Dials: 1, Requests: 3, LostReplies: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestLossEndsAfterTimes(t *testing.T) {
	t.Parallel()
	e := newEnds(t)
	e.Lose(Loss{Match: func(r Request) bool { return r.Name == "INCR" }, Times: 2, Error: "ERR"})
	client, server := e.connect()
	client.send(pipeline)
	client.gets("-ERR\r\n-ERR\r\n")
	server.gets(cmd("INCR c"))
}

// A loss hits what passes while it is set, not what is under way.
func TestLossIsDecidedWhenTheRequestPasses(t *testing.T) {
	t.Parallel()
	e := newEnds(t)
	client, server := e.connect()
	client.send(cmd("INCR a"))
	server.gets(cmd("INCR a"))
	e.Lose(Loss{Reply: true, Match: named("INCR a")})
	server.send(":1\r\n")
	client.gets(":1\r\n")
	client.send(cmd("INCR a"))
	server.gets(cmd("INCR a"))
	e.Lose(Loss{})
	server.send(":2\r\n")
	client.ended()
}

func TestEmptyRequestsAreNotAnswered(t *testing.T) {
	t.Parallel()
	e := newEnds(t)
	e.Lose(Loss{Reply: true, Match: named("PING x"), Error: "ERR"})
	client, server := e.connect()
	client.send("\r\n*0\r\n*-1\r\nPING\r\nPING x\r\n")
	server.gets("PING\r\nPING x\r\n")
	server.send("+PONG\r\n$1\r\nx\r\n")
	client.gets("+PONG\r\n-ERR\r\n")
}

func TestWhatIsNotRESPIsCut(t *testing.T) {
	t.Parallel()
	e := newEnds(t)
	client, server := e.connect()
	client.send("*1\r\n:5\r\n")
	client.ended()
	server.ended()
	client, server = e.connect()
	server.send("HTTP/1.1 200 OK\r\n")
	client.ended()
	server.ended()
}
