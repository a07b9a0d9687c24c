package redistest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// commandTimeout bounds one command, connection included. A paused server accepts connections and never answers.
const commandTimeout = 5 * time.Second

// command sends one command over a connection of its own and returns the reply as text: a nil reply is empty, the
// elements of an array are joined by newlines. It speaks RESP by hand because this package is the base of the tests
// of a Redis client's user, and must not depend on what they test.
func command(addr string, args ...string) (string, error) {
	conn, err := net.DialTimeout("tcp", addr, commandTimeout)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(commandTimeout)); err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, arg := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(arg), arg)
	}
	if _, err := io.WriteString(conn, b.String()); err != nil {
		return "", err
	}
	return readReply(bufio.NewReader(conn))
}

// readReply reads one RESP2 value.
func readReply(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimSuffix(line, "\r\n")
	if line == "" {
		return "", fmt.Errorf("redistest: empty reply line")
	}
	kind, rest := line[0], line[1:]
	switch kind {
	case '+', ':':
		return rest, nil
	case '-':
		return "", replyError(rest)
	}
	n, err := strconv.Atoi(rest)
	if err != nil {
		return "", fmt.Errorf("redistest: reply %q: %w", line, err)
	}
	switch kind {
	case '$':
		return readBulk(r, n)
	case '*':
		return readArray(r, n)
	}
	return "", fmt.Errorf("redistest: reply %q is not RESP2", line)
}

// readBulk reads the n bytes of a bulk string and the line end behind them; n is -1 for nil.
func readBulk(r *bufio.Reader, n int) (string, error) {
	if n < 0 {
		return "", nil
	}
	buf := make([]byte, n+2)
	if _, err := io.ReadFull(r, buf); err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

// readArray joins n values by newlines. It reads all of them even if one is an error, so that the error reported is
// the server's and not one of a reader out of step.
func readArray(r *bufio.Reader, n int) (string, error) {
	var (
		parts  []string
		failed error
	)
	for range n {
		part, err := readReply(r)
		if err != nil && failed == nil {
			failed = err
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "\n"), failed
}

// replyError is an error that the server answered, as opposed to one of the connection.
type replyError string

func (e replyError) Error() string { return string(e) }
