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
	"time"
)

// childFlag, as the first argument, makes the program a child: one process of a fleet, which another one measures.
const childFlag = "-child"

// What a child is told, a line each. It answers report and stop with a line of JSON, and ends when its input does, so
// it never outlives its parent.
const (
	lineReady  = "ready"
	lineStart  = "start"
	lineReport = "report"
	lineStop   = "stop"
)

// childConfig is what a child runs: one dispatcher.
type childConfig struct {
	RedisURL string
	Queues   []string      // served; empty means all
	Places   int           // 0 is the default
	Sleep    time.Duration // of the handler
	Elect    bool          // take part in the election of a leader
}

// childReport is what a child has done since its start.
type childReport struct {
	Handled, Settled int64
	Last             time.Time     // of the last settlement
	CPU              time.Duration // user and system, of the process
	// Of tasks whose payload says when they should start:
	LateP50, LateP99, LateMax float64 // ms
	Early                     int64
}

// member is a process that was started by startMember.
type member struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Scanner
}

// startMember starts a process whose dispatcher waits for start. It is killed when ctx ends.
func startMember(ctx context.Context, config childConfig) (*member, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, childFlag, string(text))
	cmd.Stderr = os.Stderr
	cmd.WaitDelay = time.Second
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &member{cmd: cmd, stdin: stdin, lines: bufio.NewScanner(stdout)}
	if line, err := c.read(); err != nil || line != lineReady {
		c.kill()
		return nil, fmt.Errorf("child says %q instead of %q: %w", line, lineReady, err)
	}
	return c, nil
}

func (c *member) read() (string, error) {
	if !c.lines.Scan() {
		return "", errors.Join(c.lines.Err(), io.ErrUnexpectedEOF)
	}
	return c.lines.Text(), nil
}

// start starts the dispatcher.
func (c *member) start() error {
	_, err := fmt.Fprintln(c.stdin, lineStart)
	return err
}

// report asks for what was done so far.
func (c *member) report() (childReport, error) { return c.ask(lineReport) }

// stop drains the dispatcher, returns the last report and waits for the end of the process.
func (c *member) stop() (childReport, error) {
	r, err := c.ask(lineStop)
	c.stdin.Close()
	return r, errors.Join(err, c.cmd.Wait())
}

func (c *member) ask(what string) (r childReport, err error) {
	if _, err := fmt.Fprintln(c.stdin, what); err != nil {
		return r, err
	}
	line, err := c.read()
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal([]byte(line), &r)
}

// kill ends the process, if it has not ended.
func (c *member) kill() {
	if c.cmd.ProcessState == nil {
		c.cmd.Process.Kill()
		c.stdin.Close()
		c.cmd.Wait()
	}
}
