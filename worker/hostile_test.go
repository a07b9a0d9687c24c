package worker

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

const (
	// deadline is what an attempt at a hostile receiver gets; margin is how late its end may be noticed on a machine
	// that is busy with other things.
	deadline = 300 * time.Millisecond
	margin   = 5 * time.Second
	// answered is the deadline of those that do their part before it, on such a machine too.
	answered = 3 * time.Second
)

// drip sends text, and then its last byte again and again, a byte every few milliseconds.
func drip(c *conn, text string) {
	ticker := time.NewTicker(3 * time.Millisecond)
	defer ticker.Stop()
	for i := 0; c.say(text[min(i, len(text)-1):][:1]); i++ {
		<-ticker.C
	}
}

// flood sends head and then line for ever.
func flood(c *conn, head, line string) {
	lines := strings.Repeat(line, 1+8192/len(line))
	for ok := c.say(head); ok; ok = c.say(lines) {
	}
}

// TestHostileReceivers: whatever a receiver does, the call returns by its deadline with the right word, and nothing is
// left of the connection.
func TestHostileReceivers(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	tests := []struct {
		name  string
		serve func(c *conn) // after the request was read
		want  Result        // without Err
		early bool          // does not take until the deadline
	}{
		{"hangs before the header", func(c *conn) {}, Result{Kind: KindTimeout}, false},
		{"hangs in the header", func(c *conn) { c.say(ok + "A: b\r\n") }, Result{Kind: KindTimeout}, false},
		{"hangs after the header", func(c *conn) { c.say(ok + "Content-Length: 5\r\n\r\n") },
			Result{Status: 200, Kind: KindTimeout, Truncated: true}, false},
		{"hangs in the body", func(c *conn) { c.say(ok + "Content-Length: 5\r\n\r\nab") },
			Result{Status: 200, Kind: KindTimeout, Snippet: "ab", Truncated: true}, false},
		{"hangs in the body of an error", func(c *conn) {
			c.say("HTTP/1.1 500 Oops\r\nContent-Length: 5\r\n\r\nab")
		}, Result{Status: 500, Kind: KindNon2xx, Snippet: "ab", Truncated: true}, false},
		{"drips a header", func(c *conn) { drip(c, ok+"A: b") }, Result{Kind: KindTimeout}, false},
		{"sends a header of 100 KiB", func(c *conn) { c.say(ok + strings.Repeat("A: 789\r\n", 100<<10/8) + "\r\n") },
			Result{Kind: KindConnect}, true},
		{"sends 100 KiB of informational responses", func(c *conn) {
			c.say(strings.Repeat("HTTP/1.1 103 Hints\r\nA: 67890\r\n\r\n", 100<<10/32) + noContent)
		}, Result{Kind: KindConnect}, true},
		{"floods the header", func(c *conn) { flood(c, ok, "A: b\r\n") }, Result{Kind: KindConnect}, true},
		{"floods one header line", func(c *conn) { flood(c, ok+"A: ", "b") }, Result{Kind: KindConnect}, true},
		{"floods the status line", func(c *conn) { flood(c, "HTTP/1.1 200 ", "b") }, Result{Kind: KindConnect}, true},
		{"floods informational responses", func(c *conn) { flood(c, "", "HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n") },
			Result{Kind: KindConnect}, true},
		{"sends a body without end", func(c *conn) { flood(c, ok+"\r\n", "b") },
			Result{Status: 200, Snippet: strings.Repeat("b", maxSnippet), Truncated: true}, true},
		{"sends chunks without end", func(c *conn) { flood(c, ok+"Transfer-Encoding: chunked\r\n\r\n", "1\r\nb\r\n") },
			Result{Status: 200, Snippet: strings.Repeat("b", maxSnippet), Truncated: true}, true},
		{"sends 10 GB", func(c *conn) { flood(c, ok+"Content-Length: 10000000000\r\n\r\n", "b") },
			Result{Status: 200, Snippet: strings.Repeat("b", maxSnippet), Truncated: true}, true},
		{"closes before the header", func(c *conn) { c.Close() }, Result{Kind: KindConnect}, true},
		{"closes in the header", func(c *conn) { c.say(ok + "A: b"); c.Close() }, Result{Kind: KindConnect}, true},
		{"closes in the body", func(c *conn) { c.say(ok + "Content-Length: 5\r\n\r\nab"); c.Close() },
			Result{Status: 200, Snippet: "ab", Truncated: true}, true},
		{"closes in the body of an error", func(c *conn) {
			c.say("HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nab")
			c.Close()
		}, Result{Status: 404, Kind: KindNon2xx, Snippet: "ab", Truncated: true}, true},
		{"resets in the body", func(c *conn) { c.say(ok + "Content-Length: 5\r\n\r\n"); c.SetLinger(0); c.Close() },
			Result{Status: 200, Truncated: true}, true},
		{"closes chunks early", func(c *conn) { c.say(ok + "Transfer-Encoding: chunked\r\n\r\n1\r\nb"); c.Close() },
			Result{Status: 200, Snippet: "b", Truncated: true}, true},
		{"speaks no HTTP", func(c *conn) { c.say("220 mail.example.com ESMTP\r\n") }, Result{Kind: KindConnect}, true},
		{"sends two lengths", func(c *conn) { c.say(ok + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab") },
			Result{Kind: KindConnect}, true},
		{"switches protocols", func(c *conn) {
			c.say("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		}, Result{Status: 101, Kind: KindNon2xx}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newReceiver(t, func(c *conn) {
				if _, ok := c.request(); ok {
					tt.serve(c)
				}
			})
			limit := deadline
			switch {
			case tt.early:
				limit = margin // returning early shows that the deadline was not needed
			case tt.want.Status > 0:
				limit = answered
			}
			got := deliverBy(t, limit, Request{URL: r.url(), Body: []byte("abc")})
			if failed := tt.want.Kind != "" && tt.want.Kind != KindNon2xx; (got.Err != nil) != failed {
				t.Errorf("the error is %v", got.Err)
			}
			if got.Err = nil; got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
			await(t, r.gone, "end of the connection")
		})
	}
}

// deliverBy delivers r within limit, on a Deliverer of its own that is closed afterwards.
func deliverBy(t *testing.T, limit time.Duration, r Request) Result {
	t.Helper()
	d := newTestDeliverer(t, nil)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	start := time.Now()
	res := d.Deliver(ctx, r)
	if took := time.Since(start); took > limit+margin {
		t.Errorf("returned after %v, with a deadline of %v", took, limit)
	}
	d.Close()
	return res
}

func TestSlowBodyEndsByTheDeadline(t *testing.T) {
	r := newReceiver(t, func(c *conn) {
		c.request()
		drip(c, "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nb")
	})
	d := newTestDeliverer(t, nil)
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	got := d.Deliver(ctx, Request{URL: r.url()})
	if got.Kind != KindTimeout || got.Status != 200 && got.Status != 0 {
		t.Errorf("got %+v, want %q", got, KindTimeout)
	}
	await(t, r.gone, "end of the connection")
}

func TestReceiverThatDoesNotRead(t *testing.T) {
	release := make(chan struct{})
	r := newReceiver(t, func(*conn) { <-release })
	got := deliverBy(t, deadline, Request{URL: r.url(), Body: bytes.Repeat([]byte("x"), 16<<20)})
	if got.Kind != KindTimeout {
		t.Errorf("got %+v, want %q", got, KindTimeout)
	}
	close(release)
	await(t, r.gone, "end of the connection")
}

// TestHandshakeWithoutEnd: the handshake goes on after the call, until the Deliverer is closed (or ten seconds are
// over). goleak sees to it that nothing stays.
func TestHandshakeWithoutEnd(t *testing.T) {
	r := newReceiver(t, func(*conn) {})
	got := deliverBy(t, deadline, Request{URL: "https://" + r.addr})
	if got.Kind != KindTimeout || got.Status != 0 {
		t.Errorf("got %+v, want %q", got, KindTimeout)
	}
	await(t, r.gone, "end of the connection")
}

func TestCompressedBodyStaysCompressed(t *testing.T) {
	var bomb bytes.Buffer
	w := gzip.NewWriter(&bomb)
	w.Write(make([]byte, 2<<20))
	w.Close()
	asked := make(chan []string, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Header.Values("Accept-Encoding")
		w.Header().Set("Content-Encoding", "gzip")
		w.Write(bomb.Bytes())
	}))
	defer srv.Close()
	d := newTestDeliverer(t, nil)

	got := d.Deliver(t.Context(), Request{URL: srv.URL})
	if got.Kind != "" || !got.Truncated || !strings.HasPrefix(got.Snippet, "\x1f?\x08") {
		t.Errorf("got %+v, want gzip as it was sent", got)
	}
	if encodings := await(t, asked, "request"); encodings != nil {
		t.Errorf("asked for %q", encodings)
	}
}

// TestConnectionsAreReused: a connection is used again when the body ended within the limit, and closed when not.
func TestConnectionsAreReused(t *testing.T) {
	for _, tt := range []struct {
		name   string
		length int
		conns  int
	}{
		{"no body", 0, 1}, {"short", 100, 1}, {"just below the limit", maxBodyBytes - 1, 1}, {"too long", 10 * maxBodyBytes, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			body := strings.Repeat("b", tt.length)
			r := newReceiver(t, answering("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"+chunks(body)))
			d := newTestDeliverer(t, nil)
			for range 3 {
				if got := d.Deliver(t.Context(), Request{URL: r.url()}); got.Kind != "" {
					t.Fatalf("got %+v", got)
				}
			}
			if len(r.conns) != tt.conns {
				t.Errorf("three calls made %d connections, want %d", len(r.conns), tt.conns)
			}
			for range tt.conns - 1 {
				await(t, r.gone, "end of a connection that is not used again")
			}
		})
	}
}

// chunks is body as one chunk, and the end.
func chunks(body string) string {
	if body == "" {
		return "0\r\n\r\n"
	}
	return fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)
}
