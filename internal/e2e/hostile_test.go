package e2e

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/dispatchkit/dispatch"
)

// misdeed is what a receiver does to a request, and what an attempt at it must come to.
type misdeed struct {
	name  string
	serve func(c *caught)
	// timeout is the attempt's. Those that end by it are short; the others must not need it on any machine.
	timeout time.Duration

	kind   dispatch.ErrorKind // "" is success
	status int
	text   string // what the record's text begins with
}

// late says whether the deadline may come before the response: on a busy machine it may come before anything.
func (m *misdeed) late() bool { return m.kind == dispatch.KindTimeout }

// caught is the receiver's end of a connection, whose request has been read.
type caught struct {
	*net.TCPConn
	sent int
}

// say writes text and says whether anyone listens.
func (c *caught) say(text string) bool {
	n, err := io.WriteString(c.TCPConn, text)
	c.sent += n
	return err == nil
}

// flood says head and then lines of text, until nobody listens.
func (c *caught) flood(head, line string) {
	lines := strings.Repeat(line, 1+4096/len(line))
	for ok := c.say(head); ok; ok = c.say(lines) {
	}
}

// drip says text and then its last byte again every second, until the other side is gone.
func (c *caught) drip(text string) {
	for c.say(text) {
		text = text[len(text)-1:]
		c.SetReadDeadline(time.Now().Add(time.Second))
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
	}
}

const (
	okay     = "HTTP/1.1 200 OK\r\n"
	oops     = "HTTP/1.1 500 Oops\r\n"
	patience = 2 * time.Minute
)

// misdeeds are the receivers of the matrix.
func misdeeds() []*misdeed {
	return []*misdeed{
		{name: "hangs", serve: func(*caught) {}, timeout: time.Second, kind: dispatch.KindTimeout},
		{name: "drips-its-header", serve: func(c *caught) { c.drip(okay + "A: b") }, timeout: time.Second, kind: dispatch.KindTimeout},
		{name: "drips-its-body", serve: func(c *caught) { c.drip(okay + "Content-Length: 1000\r\n\r\nb") }, timeout: 2 * time.Second,
			kind: dispatch.KindTimeout, status: 200},
		{name: "endless-body", serve: func(c *caught) { c.flood(okay+"\r\n", "b") }, timeout: patience, status: 200},
		{name: "endless-header", serve: func(c *caught) { c.flood(okay, "A: b\r\n") }, timeout: patience, kind: dispatch.KindConnect},
		{name: "closes-early", serve: func(c *caught) { c.Close() }, timeout: patience, kind: dispatch.KindConnect},
		{name: "resets-in-the-body", serve: func(c *caught) {
			c.say(okay + "Content-Length: 1000\r\n\r\nab")
			c.SetLinger(0)
			c.Close()
		}, timeout: patience, status: 200},
		// Each piece is 64 MiB to who decompresses it, and there is no end of them.
		{name: "gzip-bomb", serve: func(c *caught) { c.flood(oops+"Content-Encoding: gzip\r\n\r\n", gzipBomb()) }, timeout: patience,
			kind: dispatch.KindNon2xx, status: 500, text: "\x1f?\b"},
		{name: "informational-flood", serve: func(c *caught) { c.flood("", "HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n") },
			timeout: patience, kind: dispatch.KindConnect},
		// If that were followed, the guard would refuse it, and the attempt would end as KindConfig.
		{name: "redirects-to-metadata", serve: func(c *caught) {
			c.say("HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/latest/meta-data\r\nContent-Length: 5\r\n\r\nthere")
		}, timeout: patience, kind: dispatch.KindNon2xx, status: 302, text: "there"},
		{name: "invalid-text", serve: func(c *caught) { c.say(oops + "Content-Length: 9\r\n\r\na\xff\xfe\xc3(\x00\xed\xa0\x80") },
			timeout: patience, kind: dispatch.KindNon2xx, status: 500, text: "a?"},
	}
}

// gzipBomb is 64 MiB of nothing, compressed to a thousandth.
var gzipBomb = sync.OnceValue(func() string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	zeros := make([]byte, 1<<20)
	for range 64 {
		w.Write(zeros)
	}
	w.Close()
	return b.String()
})

// judge compares what a task keeps of its only attempt with what the misdeed must come to.
func (m *misdeed) judge(t testing.TB, info *dispatch.TaskInfo) {
	t.Helper()
	want := dispatch.TaskDead
	if m.kind == "" {
		want = dispatch.TaskSucceeded
	}
	h := info.Progress.History
	if info.State != want || info.Progress.Attempts != 1 || len(h) == 0 {
		t.Errorf("%s: the task is %s after %d attempts, of which %+v is kept", m.name, info.State, info.Progress.Attempts, h)
		return
	}
	a := h[len(h)-1]
	if a.ErrorKind != m.kind || a.Status != m.status && !(m.late() && a.Status == 0) || a.Number != 1 {
		t.Errorf("%s: the attempt is kept as %+v, want kind %q and status %d", m.name, a, m.kind, m.status)
	}
	if !utf8.ValidString(a.Error) || !strings.HasPrefix(a.Error, m.text) || (a.Error == "") != (m.kind == "") || len(a.Error) > 4<<10 {
		t.Errorf("%s: the attempt keeps the text %.100q", m.name, a.Error)
	}
	if m.late() && a.Duration < m.timeout {
		t.Errorf("%s: given up after %v, %v were allowed", m.name, a.Duration, m.timeout)
	}
}

// den is where the receivers listen: one port for each misdeed.
type den struct {
	urls map[*misdeed]string

	mu       sync.Mutex
	requests map[*misdeed]int
	sent     map[*misdeed]int // most bytes that one connection took
	open     atomic.Int64     // connections
	most     atomic.Int64     // of them at once
}

// newDen starts the receivers, which end with the test.
func newDen(t testing.TB, all []*misdeed) *den {
	d := &den{urls: map[*misdeed]string{}, requests: map[*misdeed]int{}, sent: map[*misdeed]int{}}
	var running sync.WaitGroup
	for _, m := range all {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		d.urls[m] = "http://" + listener.Addr().String() + "/"
		running.Go(func() {
			for {
				c, err := listener.Accept()
				if err != nil {
					return
				}
				running.Go(func() { d.serve(m, c.(*net.TCPConn)) })
			}
		})
		t.Cleanup(func() { listener.Close() })
	}
	t.Cleanup(func() {
		eventually(t, patience, "all connections to the receivers are closed", func() bool { return d.open.Load() == 0 })
	})
	return d
}

// serve has one connection, until the other side ends it.
func (d *den) serve(m *misdeed, conn *net.TCPConn) {
	defer conn.Close()
	defer d.open.Add(-1)
	for n, most := d.open.Add(1), d.most.Load(); n > most && !d.most.CompareAndSwap(most, n); most = d.most.Load() {
	}
	conn.SetWriteBuffer(8 << 10) // so that few bytes are on their way that nobody will read
	r := bufio.NewReader(conn)
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		io.Copy(io.Discard, req.Body)
		c := &caught{TCPConn: conn}
		m.serve(c)
		d.mu.Lock()
		d.requests[m]++
		d.sent[m] = max(d.sent[m], c.sent)
		d.mu.Unlock()
	}
}
