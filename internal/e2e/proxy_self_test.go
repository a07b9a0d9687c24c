package e2e

import (
	"bytes"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/dispatchkit/dispatch/internal/redistest"
)

// exchange sends one command over a connection of its own and returns what comes back.
func exchange(addr, command string, patience time.Duration) (string, error) {
	conn, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	fmt.Fprintf(conn, "%s\r\n", command)
	buf := make([]byte, 100)
	n, err := conn.Read(buf)
	return string(buf[:n]), err
}

// The faults are what they are called; otherwise the tests behind them prove nothing.
func TestProxyFaults(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	p := newProxy(t, server.Addr())
	ask := func(command string) (string, error) { return exchange(p.addr, command, 2*time.Second) }
	if got, err := ask("PING"); got != "+PONG\r\n" {
		t.Fatalf("PING through the proxy: %q, %v", got, err)
	}

	p.set(func() { p.drop = func(request []byte) bool { return bytes.Contains(request, []byte("INCR")) } })
	if got, err := ask("INCR n"); err == nil || got != "" {
		t.Errorf("INCR whose reply is lost: %q, %v", got, err)
	}
	if got, _ := ask("GET n"); got != "$1\r\n1\r\n" {
		t.Errorf("after an INCR whose reply was lost, n is %q", got)
	}
	if n := p.dropped.Load(); n != 1 {
		t.Errorf("%d replies were dropped, want 1", n)
	}

	p.set(func() { p.dark, p.drop = true, nil })
	if got, err := ask("INCR n"); err == nil {
		t.Errorf("an answer out of a black hole: %q", got)
	}
	p.set(func() { p.dark, p.delay = false, 50*time.Millisecond })
	begun := time.Now()
	if got, _ := ask("GET n"); got != "$1\r\n1\r\n" || time.Since(begun) < 100*time.Millisecond {
		t.Errorf("with a delay of 50 ms each way: %q after %v", got, time.Since(begun))
	}
	p.set(func() { p.delay = 0 })

	refused := make(chan error, 1)
	time.AfterFunc(100*time.Millisecond, func() {
		_, err := ask("PING")
		refused <- err
	})
	p.refuse(t, time.Second)
	if err := <-refused; err == nil {
		t.Error("a refused connection was served")
	}
	conn, err := net.Dial("tcp", p.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "PING\r\n")
	buf := make([]byte, 100)
	conn.SetDeadline(time.Now().Add(5 * time.Second))
	if n, err := conn.Read(buf); err != nil {
		t.Fatalf("after the refusal: %q, %v", buf[:n], err)
	}
	p.cut()
	if n, err := conn.Read(buf); err == nil {
		t.Errorf("a connection that was cut gave %q", buf[:n])
	}
}
