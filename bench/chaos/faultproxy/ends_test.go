package faultproxy

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// patience bounds what must happen, and brevity shows that something does not.
const (
	patience = 5 * time.Second
	brevity  = 50 * time.Millisecond
)

// ends is a proxy of which the test plays both the server and the clients.
type ends struct {
	*testing.T
	*Proxy
	listener net.Listener
}

func newEnds(t *testing.T) *ends {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return &ends{T: t, Proxy: open(t, l.Addr().String()), listener: l}
}

// open is Listen for tests.
func open(t *testing.T, target string) *Proxy {
	t.Helper()
	p, err := Listen(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// connect opens a connection and returns both its ends.
func (e *ends) connect() (client, server *end) {
	e.Helper()
	c, err := net.Dial("tcp", e.Addr())
	if err != nil {
		e.Fatal(err)
	}
	s, err := e.listener.Accept()
	if err != nil {
		e.Fatal(err)
	}
	return newEnd(e.T, "client", c), newEnd(e.T, "server", s)
}

// end is one end of a connection.
type end struct {
	*testing.T
	net.Conn
	name string
}

func newEnd(t *testing.T, name string, c net.Conn) *end {
	t.Cleanup(func() { c.Close() })
	return &end{T: t, Conn: c, name: name}
}

// send writes text at once.
func (e *end) send(text string) {
	e.Helper()
	if _, err := io.WriteString(e, text); err != nil {
		e.Fatalf("%s: %v", e.name, err)
	}
}

// gets reads what must arrive.
func (e *end) gets(want string) {
	e.Helper()
	e.SetReadDeadline(time.Now().Add(patience))
	buf := make([]byte, len(want))
	if n, err := io.ReadFull(e, buf); err != nil || string(buf) != want {
		e.Fatalf("%s got %q, %v; want %q", e.name, buf[:n], err, want)
	}
}

// getsNothing checks that the connection is open and silent.
func (e *end) getsNothing() {
	e.Helper()
	e.SetReadDeadline(time.Now().Add(brevity))
	buf := make([]byte, 100)
	if n, err := e.Read(buf); n > 0 || !isTimeout(err) {
		e.Fatalf("%s got %q, %v; want silence", e.name, buf[:n], err)
	}
}

// ended checks that nothing arrives but the end.
func (e *end) ended() {
	e.Helper()
	e.SetReadDeadline(time.Now().Add(patience))
	buf := make([]byte, 100)
	if n, err := e.Read(buf); n > 0 || err == nil || isTimeout(err) {
		e.Fatalf("%s got %q, %v; want the end", e.name, buf[:n], err)
	}
}

func isTimeout(err error) bool {
	timeout, ok := err.(net.Error)
	return ok && timeout.Timeout()
}

// cmd is one request in RESP, and cmds are several.
func cmd(words string) string {
	parts := strings.Fields(words)
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(parts))
	for _, part := range parts {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(part), part)
	}
	return b.String()
}

func cmds(commands ...string) string {
	var b strings.Builder
	for _, c := range commands {
		b.WriteString(cmd(c))
	}
	return b.String()
}

// named matches requests whose words are these.
func named(words string) func(Request) bool {
	want := strings.Fields(words)
	return func(r Request) bool {
		if len(r.Args) != len(want) {
			return false
		}
		for i, arg := range r.Args {
			if string(arg) != want[i] {
				return false
			}
		}
		return true
	}
}
