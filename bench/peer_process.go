package main

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// childStopLimit is how long a child that was told to end may take before it is killed.
const childStopLimit = 5 * time.Second

// child is a process of a peer, which never outlives the bench.
type child struct {
	process *os.Process
	ended   chan struct{} // closed once the process is reaped
	err     error         // how it ended; read only after ended
}

// startChild starts cmd and lets the kernel send it end when the bench is gone. That is tied to the thread that forks:
// the goroutine that starts the child keeps its thread until the child is reaped.
func startChild(cmd *exec.Cmd, end syscall.Signal) (*child, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	endWithParent(cmd.SysProcAttr, end)
	c := &child{ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		c.process = cmd.Process
		started <- err
		if err == nil {
			c.err = cmd.Wait()
			close(c.ended)
		}
	}()
	return c, <-started
}

// wait returns how the child has ended; if ctx ends first, it kills it.
func (c *child) wait(ctx context.Context) error {
	select {
	case <-c.ended:
		return c.err
	case <-ctx.Done():
		c.process.Kill()
		<-c.ended
		return context.Cause(ctx)
	}
}

// stop asks the child to end by a signal, and kills it when it does not.
func (c *child) stop(end syscall.Signal) {
	ctx, cancel := context.WithTimeout(context.Background(), childStopLimit)
	defer cancel()
	c.process.Signal(end)
	c.wait(ctx)
}
