package redistest

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The promise of the package: a test binary that gets no chance to clean up leaves no server behind.
func TestServerDiesWithAKilledBinary(t *testing.T) {
	t.Parallel()
	Require(t, Single)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^$")
	cmd.Env = append(os.Environ(), orphanEnv+"=1", "TMPDIR="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		cmd.Process.Kill()
		t.Fatalf("the binary printed no address: %v", err)
	}
	addr := strings.TrimSpace(line)
	if _, err := command(addr, "PING"); err != nil {
		t.Errorf("before the kill: %v", err)
	}
	cmd.Process.Kill()
	requireClosed(t, addr)
}

// The death signal follows the forking thread. A test that starts a server from a locked thread and returns takes the
// thread with it, and must not take the server.
func TestServerOutlivesTheThreadOfItsStarter(t *testing.T) {
	t.Parallel()
	Require(t, Single)
	started := make(chan *Server)
	go func() {
		runtime.LockOSThread() // and never unlock: the runtime destroys the thread when this goroutine returns
		s, err := Launch(Config{})
		if err != nil {
			t.Error(err)
		}
		started <- s
	}()
	s := <-started
	if s == nil {
		return
	}
	defer s.Stop()
	for range 20 {
		time.Sleep(10 * time.Millisecond) // the signal would need a moment, and there is no event for "not killed"
		requirePong(t, s)
	}
}

// Ctrl-C goes to the whole group of the program that has started the server, and is not meant for the server.
func TestServerIsInAGroupOfItsOwn(t *testing.T) {
	t.Parallel()
	pid := Start(t).PIDs()[0]
	group, err := syscall.Getpgid(pid)
	if err != nil {
		t.Fatal(err)
	}
	if group != pid {
		t.Errorf("process %d is in group %d", pid, group)
	}
}

// requireClosed waits until nobody listens on addr.
func requireClosed(t *testing.T, addr string) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(pollEvery) {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			return
		}
		conn.Close()
	}
	t.Errorf("%s still listens", addr)
}
