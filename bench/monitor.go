package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// monitor counts the commands that clients send to a server: those inside scripts are not sent, and cost no trip. The
// server's own counters do not tell them apart, its MONITOR does.
type monitor struct {
	sent atomic.Int64
	conn net.Conn
	done chan struct{}
}

// startMonitor counts until stop. Its goroutine ends with the connection.
func startMonitor(ctx context.Context, server *redis.Client) (*monitor, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", server.Options().Addr)
	if err != nil {
		return nil, err
	}
	in := bufio.NewReader(conn)
	if _, err = fmt.Fprint(conn, "MONITOR\r\n"); err == nil {
		var answer string
		if answer, err = in.ReadString('\n'); err == nil && !strings.HasPrefix(answer, "+OK") {
			err = fmt.Errorf("MONITOR: %s", strings.TrimSpace(answer))
		}
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	m := &monitor{conn: conn, done: make(chan struct{})}
	go func() {
		defer close(m.done)
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			if !strings.Contains(line, " lua] ") {
				m.sent.Add(1)
			}
		}
	}()
	return m, nil
}

// stop ends the counting and returns the count.
func (m *monitor) stop() int64 {
	m.conn.Close()
	<-m.done
	return m.sent.Load()
}
