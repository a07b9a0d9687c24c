package redistest

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are taken from below the range that the kernel hands to outgoing connections (32768 and up on Linux, 49152 on
// macOS). Otherwise a client could be given the port of a killed server, and Restart would find it in use.
const (
	portFrom = 16_000
	portTo   = 32_000
)

// freePort returns a port that nobody listens on. It is free only as long as nobody else takes it.
func freePort() (int, error) {
	for range 100 {
		port := portFrom + rand.IntN(portTo-portFrom)
		l, err := net.Listen("tcp", address(port))
		if err != nil {
			continue
		}
		l.Close()
		return port, nil
	}
	return 0, errors.New("redistest: no free port in 100 attempts")
}

// address is where a server with that port listens: never anywhere but on the loopback interface.
func address(port int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}
