package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/dispatchkit/dispatch/bench/chaos/faultproxy"
	"github.com/dispatchkit/dispatch/internal/redistest"
)

// faultKill is what Process.Kill writes to the ledger.
const faultKill = "kill"

const (
	readyLimit = 20 * time.Second // until a new process works
	goneLimit  = 40 * time.Second // until one that was told to stop is gone: more than a worker's drain
)

// Process is this program, started again as a worker or a producer. It never outlives the process that started it: the kernel kills
// it with SIGKILL. Methods that break something write that to the ledger first. It is safe for concurrent use.
type Process struct {
	// Who is its name in the ledger, such as "worker-2". A process that takes the place of a killed one has a new name.
	Who string

	run   *Run
	cmd   *exec.Cmd
	input io.WriteCloser
	proxy *faultproxy.Proxy // its own, or nil
	ready chan struct{}     // closed when it has said that it works
	done  chan struct{}     // closed when it is gone and all that it said is read
	exit  error             // read after done

	mu      sync.Mutex // guards what it has said of itself
	worker  string
	stopped string
	leak    string
	told    bool // to end
}

// launch starts a process and returns when it works. It ends with the run.
func (r *Run) launch(ctx context.Context, c childConfig, own *faultproxy.Proxy) (*Process, error) {
	c.Ledger = r.ledgerDir()
	config, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	complaints, err := os.Create(filepath.Join(r.dir, c.Who+".stderr"))
	if err != nil {
		return nil, err
	}
	defer complaints.Close()
	p := &Process{
		Who: c.Who, run: r, cmd: exec.Command(self, childFlag, string(config)), proxy: own,
		ready: make(chan struct{}), done: make(chan struct{}),
	}
	p.cmd.Stderr, p.cmd.SysProcAttr = complaints, redistest.ParentDeath()
	started := make(chan error, 1)
	go p.keep(started)
	if err := <-started; err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.processes = append(r.processes, p)
	r.mu.Unlock()
	limit := time.NewTimer(readyLimit)
	defer limit.Stop()
	select {
	case <-p.ready:
		return p, nil
	case <-p.done:
		return nil, fmt.Errorf("%s ended at its start: %v: %s", p.Who, p.exit, p.complaints())
	case <-limit.C:
		return nil, fmt.Errorf("%s is not ready after %v: %s", p.Who, readyLimit, p.complaints())
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// keep forks the process and stays until it is gone. The kernel ties the death signal to the forking thread, so the goroutine keeps
// its thread.
func (p *Process) keep(started chan<- error) {
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

// hear takes in one line of the process; see say.
func (p *Process) hear(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch word, rest, _ := strings.Cut(line, " "); word {
	case "ready":
		p.worker = rest
		close(p.ready)
	case "stopped":
		p.stopped = rest
	case "leak":
		p.leak = rest
	}
}

// Worker is the ID under which the product knows the process; empty for producers.
func (p *Process) Worker() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.worker
}

// Proxy is the process's own proxy, with WorkerConfig.OwnProxy, or nil. Cutting the process off is a fault with its name:
// p.Isolate does both.
func (p *Process) Proxy() *faultproxy.Proxy { return p.proxy }

// Kill ends the process with SIGKILL and returns when it is gone.
func (p *Process) Kill() {
	p.end()
	p.run.Fault(faultKill, p.Who)
	p.cmd.Process.Kill() // an error means that it is gone already
	<-p.done
}

// Stop freezes the process with SIGSTOP, and Cont thaws it.
func (p *Process) Stop() error { return p.signal("stop", syscall.SIGSTOP) }

// Cont undoes Stop.
func (p *Process) Cont() error { return p.signal("cont", syscall.SIGCONT) }

func (p *Process) signal(fault string, sig syscall.Signal) error {
	p.run.Fault(fault, p.Who)
	if err := p.cmd.Process.Signal(sig); err != nil {
		return fmt.Errorf("%s to %s: %w", fault, p.Who, err)
	}
	return nil
}

// Isolate cuts a process with a proxy of its own off from the servers, or lets it through again.
func (p *Process) Isolate(on bool) {
	if on {
		p.run.Fault("blackhole", p.Who)
	} else {
		p.run.Fault("heal", p.Who)
	}
	p.proxy.BlackHole(on)
}

// Term asks the process to stop in order, with SIGTERM, and does not wait.
func (p *Process) Term() error {
	p.end()
	p.run.Note("SIGTERM to %s", p.Who)
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("SIGTERM to %s: %w", p.Who, err)
	}
	return nil
}

// Wait waits until a process that was told to stop, or has nothing left to do, is gone. That it ended with an error, or left
// goroutines, is an error.
func (p *Process) Wait(ctx context.Context) error {
	limit := time.NewTimer(goneLimit)
	defer limit.Stop()
	select {
	case <-p.done:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-limit.C:
		return fmt.Errorf("%s has not ended after %v", p.Who, goneLimit)
	}
	if p.exit != nil {
		return fmt.Errorf("%s: %w: %s", p.Who, p.exit, p.complaints())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.leak != "" {
		return fmt.Errorf("%s left goroutines: %s", p.Who, p.leak)
	}
	return nil
}

// Finish asks the process to stop in order and waits until it is gone.
func (p *Process) Finish(ctx context.Context) error {
	if err := p.Term(); err != nil {
		return err
	}
	return p.Wait(ctx)
}

// Open opens the gate for which tasks with Work.Gate wait, for good.
func (p *Process) Open() error { return p.command("open") }

// StepClock sets the clock of the process forward by d, or back, in whole seconds: see skewedClock.
func (p *Process) StepClock(d time.Duration) error {
	p.run.Fault("clock", p.Who)
	return p.command("step " + d.String())
}

// command writes a line to the process; see child.obey.
func (p *Process) command(line string) error {
	if _, err := fmt.Fprintln(p.input, line); err != nil {
		return fmt.Errorf("%q to %s: %w", line, p.Who, err)
	}
	return nil
}

// CPU is the processor time that the process has used; an error where /proc is missing or the process is gone.
func (p *Process) CPU() (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat is %q", p.cmd.Process.Pid, text)
	}
	user, err1 := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond, errors.Join(err1, err2) // USER_HZ is 100 on Linux
}

// Memory is the most memory that the process has had in use, in bytes; an error where /proc is missing or the process is gone.
func (p *Process) Memory() (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, rest, found := strings.Cut(string(text), "VmHWM:")
	fields := strings.Fields(rest)
	if !found || len(fields) == 0 {
		return 0, fmt.Errorf("/proc/%d/status does not say", p.cmd.Process.Pid)
	}
	kilobytes, err := strconv.ParseInt(fields[0], 10, 64)
	return kilobytes << 10, err
}

// end notes that the process is to end, so that its end is no surprise.
func (p *Process) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told = true
}

// close ends the process and says what nobody has asked for: that it ended by itself, raced or panicked.
func (p *Process) close() error {
	var unasked error
	select {
	case <-p.done:
		p.mu.Lock()
		if !p.told && p.exit != nil {
			unasked = fmt.Errorf("%s ended by itself: %v: %s", p.Who, p.exit, p.complaints())
		}
		p.mu.Unlock()
	default:
		p.cmd.Process.Kill()
		<-p.done
	}
	p.input.Close()
	text := p.complaints()
	for _, bad := range []string{"DATA RACE", "panic:", "fatal error:"} {
		if unasked == nil && strings.Contains(text, bad) {
			unasked = fmt.Errorf("%s wrote %q: %s", p.Who, bad, text)
		}
	}
	return unasked
}

// complaints is the end of what the process has written to its standard error.
func (p *Process) complaints() string {
	text, _ := os.ReadFile(filepath.Join(p.run.dir, p.Who+".stderr"))
	const limit = 4_000
	return string(text[max(0, len(text)-limit):])
}
