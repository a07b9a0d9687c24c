package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dispatchkit/dispatch/cluster"
	"github.com/dispatchkit/dispatch/internal/redistest"
)

// process is one worker process.
type process struct {
	t      testing.TB
	ledger *ledger
	cmd    *exec.Cmd
	input  io.WriteCloser
	errors logBuffer
	done   chan struct{} // closed when the process is gone and all that it said is read
	exit   error         // read after done

	mu         sync.Mutex // guards what the process has said of itself
	worker     string
	goroutines []int
	roles      []role
	drainedAt  time.Time
	stopped    string
	leak       string
}

// spawn starts a worker process and returns when it works. It ends with the test.
func spawn(t testing.TB, l *ledger, s settings) *process {
	t.Helper()
	config, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, ledger: l, cmd: exec.Command(os.Args[0]), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), childEnv+"="+string(config))
	p.cmd.Stderr, p.cmd.SysProcAttr = &p.errors, redistest.ParentDeath()
	started := make(chan error, 1)
	go p.keep(started)
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	eventually(t, 20*time.Second, "the worker process is ready", func() bool { return p.workerID() != "" || p.gone() })
	if p.gone() {
		t.Fatalf("the worker process ended at its start: %v\n%s", p.exit, p.errors.tail())
	}
	return p
}

// keep forks the process and stays until it is gone. The kernel ties the death signal to the forking thread, so the
// goroutine keeps its thread.
func (p *process) keep(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		p.input, err = p.cmd.StdinPipe()
	}
	if err == nil {
		err = p.cmd.Start()
	}
	started <- err
	if err != nil {
		return
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		p.hear(lines.Text())
	}
	p.exit = p.cmd.Wait()
	close(p.done)
}

func (p *process) hear(line string) {
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "start", "end", "outcome", "said":
		p.ledger.hear(p, word, rest)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch word {
	case "ready":
		p.worker = rest
	case "stats":
		n, _ := strconv.Atoi(rest)
		p.goroutines = append(p.goroutines, n)
	case "leads", "follows":
		p.roles = append(p.roles, role{word == "leads", microTime(rest)})
	case "draining":
		p.drainedAt = microTime(rest)
	case "stopped":
		p.stopped = rest
	case "leak":
		p.leak = rest
	}
}

func microTime(s string) time.Time {
	n, _ := strconv.ParseInt(s, 10, 64)
	return time.UnixMicro(n)
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) workerID() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.worker
}

// is says whether a row of the registry is the process's.
func (p *process) is(w *cluster.Worker) bool { return string(w.ID) == p.workerID() }

func (p *process) gone() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// role is what a process takes itself for from an instant on.
type role struct {
	leads bool
	since time.Time
}

// role is the process's latest one.
func (p *process) role() role {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.roles) == 0 {
		return role{}
	}
	return p.roles[len(p.roles)-1]
}

// command writes a line to the process.
func (p *process) command(word string) {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.input, word); err != nil {
		p.t.Fatalf("%q to a worker process: %v", word, err)
	}
}

// signal sends a signal by process ID.
func (p *process) signal(sig syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Fatalf("%v to a worker process: %v", sig, err)
	}
}

// kill ends the process as a crash does, and returns when all that it had said is read.
func (p *process) kill() {
	p.cmd.Process.Kill() // an error means that it is gone already
	<-p.done
}

// countGoroutines asks the process how many goroutines it has.
func (p *process) countGoroutines() int {
	p.t.Helper()
	p.mu.Lock()
	before := len(p.goroutines)
	p.mu.Unlock()
	p.command("stats")
	n := 0
	eventually(p.t, 10*time.Second, "the worker process counts its goroutines", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.goroutines) > before {
			n = p.goroutines[before]
		}
		return n > 0
	})
	return n
}

// cpu is the processor time that the process has used, or 0 where that cannot be read.
func (p *process) cpu() time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid()))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond // USER_HZ is 100 on Linux
}

// close ends the process, and says what it complained of if the test failed.
func (p *process) close() {
	p.kill()
	p.input.Close()
	text := p.errors.tail()
	if strings.Contains(text, "DATA RACE") || strings.Contains(text, "panic:") || strings.Contains(text, "fatal error:") {
		p.t.Errorf("worker process %d:\n%s", p.pid(), text)
	} else if p.t.Failed() {
		p.t.Logf("worker process %d (%v) wrote:\n%s", p.pid(), p.exit, text)
	}
	if p.leak != "" {
		p.t.Errorf("worker process %d left goroutines: %s", p.pid(), p.leak)
	}
}

// logBuffer is what a process writes to its standard error.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) all() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func (b *logBuffer) tail() string {
	text := b.all()
	const limit = 6_000
	return text[max(0, len(text)-limit):]
}
