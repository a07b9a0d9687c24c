package worker

import (
	"io"
	"net/http"
	"sync"
)

const (
	// maxBodyBytes is how much of a response's body is read. A connection whose body ends within it is used again; one
	// with more to say is closed, which is cheaper than to listen.
	maxBodyBytes = 64 << 10
	// maxSnippet is how much of the body is kept.
	maxSnippet = 1 << 10
)

// readBuffer holds the beginning of a body, which stays, and room for the rest of it, which is read over and over.
type readBuffer [4 << 10]byte

var readBuffers = sync.Pool{New: func() any { return new(readBuffer) }}

// readBody reads and closes the response's body. It returns the snippet, whether the body did not end with it, and why
// the body broke off; a body that is too long is no error.
func readBody(resp *http.Response) (text string, truncated bool, err error) {
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return "", false, nil // this "body" is the bare connection, which does not end with the context
	}
	buf := readBuffers.Get().(*readBuffer)
	defer readBuffers.Put(buf)

	kept, total := 0, 0
	for err == nil && total < maxBodyBytes {
		var n int
		n, err = resp.Body.Read(buf[kept:min(len(buf), kept+maxBodyBytes-total)])
		total += n
		kept = min(kept+n, maxSnippet)
	}
	if err == io.EOF {
		err = nil
	}
	return snippet(buf[:kept], total > kept), total > kept || err != nil, err
}
