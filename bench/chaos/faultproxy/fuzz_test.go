package faultproxy

import (
	"bytes"
	"fmt"
	"testing"
	"testing/iotest"
)

// FuzzRequests: how the bytes are cut into chunks changes nothing, and nothing is lost or invented.
func FuzzRequests(f *testing.F) {
	for _, seed := range []string{
		pipeline, cmds("EVALSHA abc 1 k v", "PING"), "PING\r\n\r\n*0\r\n*-1\r\n", "*2\r\n$0\r\n\r\n$2\r\n\r\n\r\n", "*1\r\n$-1\r\n", "*9\r\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		scan := func(in *intake) (string, int, error) {
			args, n, err := scanRequest(in.rest(), nil)
			return fmt.Sprintf("%q", args), n, err
		}
		requireSameInPieces(t, b, scan)
	})
}

// FuzzReplies is the same for what a server sends.
func FuzzReplies(f *testing.F) {
	for _, seed := range []string{
		"+OK\r\n-ERR\r\n:1\r\n", "*2\r\n*1\r\n:1\r\n$1\r\nx\r\n", "%1\r\n+k\r\n|1\r\n+a\r\n+b\r\n>1\r\n+x\r\n", "$-1\r\n*-1\r\n_\r\n", "*999999999\r\n:1\r\n", "$?\r\n",
		"*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$2\r\nhi\r\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		scan := func(in *intake) (string, int, error) {
			r, err := scanReply(in.rest())
			return fmt.Sprintf("%c %q", r.kind, r.words), r.size, err
		}
		requireSameInPieces(t, b, scan)
	})
}

// FuzzArgs: a request is read as it was written.
func FuzzArgs(f *testing.F) {
	f.Add([]byte("SET"), []byte("k"), []byte("v\r\n$1\r\n"))
	f.Fuzz(func(t *testing.T, a, b, c []byte) {
		want := [][]byte{a, b, c}
		var raw bytes.Buffer
		fmt.Fprintf(&raw, "*%d\r\n", len(want))
		for _, arg := range want {
			fmt.Fprintf(&raw, "$%d\r\n%s\r\n", len(arg), arg)
		}
		got, n, err := scanRequest(append(raw.Bytes(), cmd("PING")...), nil)
		if n != raw.Len() || err != nil || fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
			t.Fatalf("got %q of %d bytes, %v; want %q of %d", got, n, err, want, raw.Len())
		}
	})
}

// requireSameInPieces reads b byte by byte, in halves, and at once.
func requireSameInPieces(t *testing.T, b []byte, scan func(*intake) (string, int, error)) {
	t.Helper()
	whole := readAll(t, &intake{from: bytes.NewReader(b)}, scan)
	bytewise := readAll(t, &intake{from: iotest.OneByteReader(bytes.NewReader(b))}, scan)
	halved := readAll(t, &intake{from: iotest.HalfReader(bytes.NewReader(b))}, scan)
	if whole != bytewise || whole != halved {
		t.Fatalf("at once:\n%s\nbyte by byte:\n%s\nin halves:\n%s", whole, bytewise, halved)
	}
}

// readAll is what scan makes of the stream, with the length of each part.
func readAll(t *testing.T, in *intake, scan func(*intake) (string, int, error)) string {
	t.Helper()
	var read bytes.Buffer
	for in.more() == nil {
		for {
			what, n, err := scan(in)
			if err != nil {
				fmt.Fprintf(&read, "%v\n", err)
				return read.String()
			}
			if n == 0 {
				break
			}
			if n < 0 || n > len(in.rest()) {
				t.Fatalf("%d bytes of %d", n, len(in.rest()))
			}
			fmt.Fprintf(&read, "%d %s\n", n, what)
			in.take(n)
		}
	}
	fmt.Fprintf(&read, "%d left", len(in.rest()))
	return read.String()
}
