package faultproxy

import (
	"net"
	"strings"
	"testing"
	"time"
)

func TestCut(t *testing.T) {
	t.Parallel()
	e := newEnds(t)
	client, server := e.connect()
	client.send(cmd("PING"))
	server.gets(cmd("PING"))
	e.Cut()
	client.ended()
	server.ended()
	client, server = e.connect()
	client.send(cmd("PING"))
	server.gets(cmd("PING"))
}

func TestRefuseAndAccept(t *testing.T) {
	t.Parallel()
	e := newEnds(t)
	client, server := e.connect()
	e.Refuse()
	e.Refuse()
	if c, err := net.Dial("tcp", e.Addr()); err == nil {
		c.Close()
		t.Error("a connection is not refused")
	}
	client.send(cmd("PING"))
	server.gets(cmd("PING"))
	for range 2 {
		if err := e.Accept(); err != nil {
			t.Fatal(err)
		}
	}
	e.connect()
}

func TestBlackHole(t *testing.T) {
	t.Parallel()
	e := newEnds(t)
	client, server := e.connect()
	e.BlackHole(true)
	client.send(cmd("PING"))
	server.send("+PONG\r\n")
	client.getsNothing()
	server.getsNothing()
	server.Close() // is not seen through it either
	client.getsNothing()

	late, err := net.Dial("tcp", e.Addr())
	if err != nil {
		t.Fatalf("a black hole refuses: %v", err)
	}
	born := newEnd(t, "client of the black hole", late)
	born.send(cmd("PING"))
	born.getsNothing()

	e.BlackHole(false)
	client.ended()
	born.ended()
	client, server = e.connect()
	client.send(cmd("PING"))
	server.gets(cmd("PING"))
}

func TestHalfOpen(t *testing.T) {
	t.Parallel()
	e := newEnds(t)
	client, server := e.connect()
	e.HalfOpen(true)
	client.send(cmd("PING"))
	server.gets(cmd("PING"))
	server.send("+PONG\r\n")
	client.getsNothing()
	client.send(cmd("PING"))
	server.gets(cmd("PING"))
	e.HalfOpen(false)
	client.ended()
	server.ended()
}

// Delay moves everything, and what was sent together arrives together.
func TestDelay(t *testing.T) {
	t.Parallel()
	e := newEnds(t)
	client, server := e.connect()
	const delay = 100 * time.Millisecond
	e.Delay(delay)
	begun := time.Now()
	long := cmd("SET k " + strings.Repeat("x", 500_000)) // many chunks
	client.send(long)
	server.gets(long)
	if took := time.Since(begun); took < delay || took > 10*delay {
		t.Errorf("%d bytes arrived after %v, want %v", len(long), took, delay)
	}
	begun = time.Now()
	server.send("+OK\r\n")
	client.gets("+OK\r\n")
	if took := time.Since(begun); took < delay {
		t.Errorf("the reply arrived after %v, want %v", took, delay)
	}
}

func TestThrottle(t *testing.T) {
	t.Parallel()
	e := newEnds(t)
	client, server := e.connect()
	e.Throttle(100_000)
	request := cmd("SET k " + strings.Repeat("x", 20_000))
	begun := time.Now()
	client.send(request)
	server.gets(request)
	if took := time.Since(begun); took < 200*time.Millisecond {
		t.Errorf("20,000 bytes at 100,000 a second took %v", took)
	}
	e.Throttle(0)
	client.send(request)
	server.gets(request)
}

func TestSetTarget(t *testing.T) {
	t.Parallel()
	old, next := newEnds(t), newEnds(t)
	client, server := old.connect()
	old.SetTarget(next.listener.Addr().String())
	client.send(cmd("PING"))
	server.gets(cmd("PING"))
	moved := &ends{T: t, Proxy: old.Proxy, listener: next.listener}
	client, server = moved.connect()
	client.send(cmd("PING"))
	server.gets(cmd("PING"))
}

func TestNoTarget(t *testing.T) {
	t.Parallel()
	p := open(t, "")
	if c, err := net.Dial("tcp", p.Addr()); err == nil { // the reset may come before Dial returns
		newEnd(t, "client", c).ended()
	}
}

// What a replica sends and gets after it has shown itself is no RESP, and is not hit.
func TestReplicasAreSpared(t *testing.T) {
	t.Parallel()
	e := newEnds(t)
	e.Lose(Loss{Reply: true, Match: func(r Request) bool { return r.Name != "PING" }})
	client, server := e.connect()
	client.send(cmd("PING"))
	server.gets(cmd("PING"))
	server.send("+PONG\r\n")
	client.gets("+PONG\r\n")
	client.send(cmd("REPLCONF listening-port 1"))
	server.gets(cmd("REPLCONF listening-port 1"))
	e.BlackHole(true)
	e.Throttle(1)
	e.Delay(time.Hour)
	server.send("+OK\r\n$6\r\nREDIS!stream without a line end")
	client.gets("+OK\r\n$6\r\nREDIS!stream without a line end")
	client.send("anything\n\n")
	server.gets("anything\n\n")
	e.BlackHole(false)
	e.Cut()
	client.send("still here")
	server.gets("still here")
	server.Close()
	client.ended()
}

func TestEndOfAStreamArrivesBehindItsContent(t *testing.T) {
	t.Parallel()
	e := newEnds(t)
	e.Delay(brevity)
	client, server := e.connect()
	client.send(cmd("QUIT"))
	server.gets(cmd("QUIT"))
	server.send("+OK\r\n")
	server.Close()
	client.gets("+OK\r\n")
	client.ended()
}

// A client may write more than all buffers hold before it reads anything: Redis keeps its replies meanwhile.
func TestLongPipelineBeforeItIsRead(t *testing.T) {
	t.Parallel()
	e := newEnds(t)
	client, server := e.connect()
	const n, size = 500, 20_000
	value := strings.Repeat("x", size)
	reply := "+" + value + "\r\n"
	go func() {
		request := make([]byte, len(cmd("ECHO "+value)))
		for range n {
			if _, err := server.Read(request[:1]); err != nil {
				return
			}
			for rest := request[1:]; len(rest) > 0; {
				k, err := server.Read(rest)
				if err != nil {
					return
				}
				rest = rest[k:]
			}
			if _, err := server.Write([]byte(reply)); err != nil {
				return
			}
		}
	}()
	client.SetWriteDeadline(time.Now().Add(patience))
	for range n {
		client.send(cmd("ECHO " + value))
	}
	for range n {
		client.gets(reply)
	}
}

func TestCloseEndsEverything(t *testing.T) {
	t.Parallel()
	e := newEnds(t)
	client, _ := e.connect()
	e.Delay(time.Hour)
	client.send(cmd("PING"))
	late, err := net.Dial("tcp", e.Addr())
	if err != nil {
		t.Fatal(err)
	}
	second := newEnd(t, "second client", late)
	e.Close()
	e.Close()
	client.ended()
	second.ended()
	if err := e.Accept(); err == nil {
		t.Error("a closed proxy accepts again")
	}
}
