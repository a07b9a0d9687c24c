package redistest

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	startLimit = 10 * time.Second // until a new process answers PING
	stopLimit  = 5 * time.Second  // until SIGTERM has ended one
	pollEvery  = 5 * time.Millisecond
)

// errPortTaken says that another process got the port between the check and the bind.
var errPortTaken = errors.New("redistest: port is taken")

// node is one redis-server process, or the place of one that was killed: port, directory and arguments stay.
type node struct {
	addr string
	dir  string
	log  string // path of what it says
	args []string

	mu    sync.Mutex // guards child against a fault injected from another goroutine
	child *child
}

// newNode starts a server on a free port, in a directory of its own. Another process may take the port first, so a
// collision is tried again with another one.
func newNode(cfg Config) (*node, error) {
	var err error
	for range 5 {
		var n *node
		if n, err = placeNode(cfg); err != nil {
			return nil, err
		}
		if err = n.start(); err == nil {
			return n, nil
		}
		n.stop()
		if !errors.Is(err, errPortTaken) {
			break
		}
	}
	return nil, err
}

// placeNode chooses port, directory and command line, and starts nothing.
func placeNode(cfg Config) (*node, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	args := []string{"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"}
	if cfg.AOF {
		args[len(args)-1] = "yes"
	}
	if cfg.Masters > 0 || cfg.Member {
		// Without a bus port of its own a node would use port + 10000, which nobody checked.
		bus, err := freePort()
		if err != nil {
			return nil, err
		}
		args = append(args, "--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(bus),
			"--cluster-node-timeout", "1000")
	}
	dir, err := os.MkdirTemp("", "redistest-")
	if err != nil {
		return nil, err
	}
	args = append(args, "--dir", dir)
	log := filepath.Join(cmp.Or(cfg.LogDir, dir), "redis-"+strconv.Itoa(port)+".log")
	return &node{addr: address(port), dir: dir, log: log, args: append(args, cfg.Args...)}, nil
}

// start forks the server and returns when it serves.
func (n *node) start() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	out, err := os.OpenFile(n.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.Command("redis-server", n.args...)
	cmd.Stdout, cmd.Stderr = out, out
	c, err := spawn(cmd)
	if err != nil {
		return fmt.Errorf("redistest: cannot start redis-server: %w", err)
	}
	n.child = c
	for deadline := time.Now().Add(startLimit); ; time.Sleep(pollEvery) {
		err := n.serves(c.process.Pid)
		switch {
		case err == nil:
			return nil
		case !c.alive():
			return n.diagnose(c.err)
		case time.Now().After(deadline):
			return fmt.Errorf("redistest: %s does not serve after %v: %w\n%s", n.addr, startLimit, err, n.logTail())
		}
	}
}

// serves asks for more than PONG: if another process's Redis sits on the port, PING is answered while our own server
// is still on its way to fail. The process ID tells them apart. While an AOF loads, PING is answered by an error.
func (n *node) serves(pid int) error {
	if _, err := command(n.addr, "PING"); err != nil {
		return err
	}
	info, err := command(n.addr, "INFO", "server")
	if err != nil {
		return err
	}
	if got := infoField(info, "process_id"); got != strconv.Itoa(pid) {
		return fmt.Errorf("process %s answers, not %d", got, pid)
	}
	return nil
}

// diagnose turns the early end of a server into an error that says why.
func (n *node) diagnose(ended error) error {
	log := n.logTail()
	if strings.Contains(log, "Address already in use") {
		return fmt.Errorf("%w: %s", errPortTaken, n.addr)
	}
	return fmt.Errorf("redistest: redis-server ended at start: %v\n%s", ended, log)
}

// kill ends the process the hard way. Its port is closed when kill returns.
func (n *node) kill() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.child != nil {
		n.child.kill()
	}
}

// terminate ends the process in order; a server with an AOF writes it out. One that is paused is woken for it.
func (n *node) terminate() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.child.alive() {
		return
	}
	n.child.process.Signal(syscall.SIGTERM)
	n.child.process.Signal(syscall.SIGCONT)
	if !n.child.wait(stopLimit) {
		n.child.kill()
	}
}

// signal delivers sig; a server that has ended is an error.
func (n *node) signal(sig syscall.Signal) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.child.process.Signal(sig); err != nil {
		return fmt.Errorf("redistest: %v to %s: %w", sig, n.addr, err)
	}
	return nil
}

// pid is the process ID of the running or last server.
func (n *node) pid() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.child.process.Pid
}

// stop ends the process and removes its directory. Nothing in it is worth an orderly end.
func (n *node) stop() {
	n.kill()
	os.RemoveAll(n.dir)
}

// logTail is the end of what the server wrote, for error messages.
func (n *node) logTail() string {
	text, _ := os.ReadFile(n.log)
	const limit = 2_000
	return string(text[max(0, len(text)-limit):])
}

// infoField finds name in the lines "name:value" of INFO and CLUSTER INFO.
func infoField(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
