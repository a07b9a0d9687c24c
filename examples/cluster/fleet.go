package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/dispatchkit/dispatch/cluster"
)

// fleet is the processes that this one has started.
type fleet []*process

// process is this program once more, as a worker.
type process struct {
	name  string
	cmd   *exec.Cmd
	stdin io.Closer    // its end tells the worker to stop
	log   bytes.Buffer // what it wrote to standard error; complete when done

	id   cluster.WorkerID // once up
	up   chan struct{}    // closed by its first report
	done chan struct{}    // closed when it has ended and all its reports are read
	err  error            // how it ended, when done

	killed bool
}

// start starts n workers and waits until all are up. The end of ctx kills them.
func (f *fleet) start(ctx context.Context, n int, redisURL string, note func(report)) error {
	for i := range n {
		p, err := startProcess(ctx, fmt.Sprintf("worker %d", i+1), redisURL, note)
		if err != nil {
			return err
		}
		*f = append(*f, p)
	}
	for _, p := range *f {
		select {
		case <-p.up:
		case <-p.done:
			return fmt.Errorf("%s has ended before it was up: %v", p, p.err)
		case <-time.After(patience):
			return fmt.Errorf("%s is not up after %v", p, patience)
		}
	}
	return nil
}

func startProcess(ctx context.Context, name, redisURL string, note func(report)) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{name: name, cmd: exec.CommandContext(ctx, self), up: make(chan struct{}), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), workerEnv+"="+redisURL)
	p.cmd.Stderr = &p.log
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.done)
		p.read(stdout, note)
		p.err = p.cmd.Wait()
	}()
	return p, nil
}

// read takes in all reports of a worker. What it was killed in writing is not one.
func (p *process) read(stdout io.Reader, note func(report)) {
	lines := json.NewDecoder(stdout)
	for r := (report{}); lines.Decode(&r) == nil; r = (report{}) {
		if r.Fact == "up" {
			p.id = r.Worker
			close(p.up)
		}
		note(r)
	}
	io.Copy(io.Discard, stdout) // a worker must not hang because nobody reads
}

// String is the worker's name, and its process for those who watch with ps.
func (p *process) String() string { return fmt.Sprintf("%s (pid %d)", p.name, p.cmd.Process.Pid) }

// kill ends a worker as a crash does. It returns when nothing of it is left, and may be called again.
func (p *process) kill() {
	p.killed = true
	p.cmd.Process.Kill() // an error means that it has ended already
	<-p.done
}

// find returns the process of a worker, or nil.
func (f fleet) find(id cluster.WorkerID) *process {
	if i := slices.IndexFunc(f, func(p *process) bool { return p.id == id }); i >= 0 {
		return f[i]
	}
	return nil
}

// living are the processes that were not killed: those that run, and those that have stopped.
func (f fleet) living() fleet {
	return slices.DeleteFunc(slices.Clone(f), func(p *process) bool { return p.killed })
}

// stop lets all living workers drain and waits until they have.
func (f fleet) stop() error {
	living := f.living()
	for _, p := range living {
		if p.cmd.Process.Signal(syscall.SIGTERM) != nil {
			p.stdin.Close() // Windows knows no such signal
		}
	}
	for _, p := range living {
		select {
		case <-p.done:
			if p.err != nil {
				return fmt.Errorf("%s has not stopped in good order: %w", p, p.err)
			}
		case <-time.After(patience):
			return fmt.Errorf("%s still runs %v after it was told to stop", p, patience)
		}
	}
	return nil
}

// kill kills all that run.
func (f fleet) kill() {
	for _, p := range f {
		p.kill()
	}
}

// printLogs prints what the workers had to say, for when something went wrong. It is called after kill.
func (f fleet) printLogs(w io.Writer) {
	for _, p := range f {
		fmt.Fprintf(w, "--- log of %s: %v\n%s", p, p.err, p.log.Bytes())
	}
}
