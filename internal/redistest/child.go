package redistest

import (
	"os"
	"os/exec"
	"runtime"
	"time"
)

// child is one process and the goroutine that keeps it.
type child struct {
	process *os.Process
	done    chan struct{} // closed by the keeper once the process is reaped
	err     error         // how the process ended; read only after done
}

// spawn starts cmd under a keeper: a goroutine that locks its OS thread, forks, and waits. The kernel ties the death
// signal of ParentDeath to the forking thread, so that thread must live as long as the child; a goroutine that does
// nothing else guarantees it, and ends with the child, so leak detectors have nothing to report after Stop.
func spawn(cmd *exec.Cmd) (*child, error) {
	cmd.SysProcAttr = ParentDeath()
	c := &child{done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		c.process = cmd.Process
		started <- err
		if err != nil {
			return
		}
		c.err = cmd.Wait()
		close(c.done)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return c, nil
}

// alive says whether the process has not been reaped yet.
func (c *child) alive() bool {
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

// wait reports whether the process ended within limit.
func (c *child) wait(limit time.Duration) bool {
	select {
	case <-c.done:
		return true
	case <-time.After(limit):
		return false
	}
}

// kill ends the process with SIGKILL, which also works on a stopped one, and returns when it is reaped.
func (c *child) kill() {
	c.process.Kill() // an error means that it has ended already
	<-c.done
}
