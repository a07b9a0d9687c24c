package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

const (
	bullmqDir     = "bullmq"        // of the scripts, seen from the bench's folder
	bullmqInstall = 2 * time.Minute // npm's time limit
	bullmqMost    = 40_000          // tasks of a run
)

func init() { peers = append(peers, bullmqEntries) }

// bullmqEntries are BullMQ's ways of getting a figure, in one Node.js process.
func bullmqEntries(figureName string) []entry {
	switch figureName {
	case "enqueue/single64":
		return []entry{{"bullmq", "add from 64 callers", bullmqValue("enqueue.mjs", map[string]any{"callers": callers})}}
	case "enqueue/many":
		var entries []entry
		for _, calls := range []int{1, 2} {
			entries = append(entries, entry{"bullmq", fmt.Sprintf("addBulk of 1,000, %d at a time", calls),
				bullmqValue("enqueue.mjs", map[string]any{"calls": calls, "batch": 1000})})
		}
		return entries
	case "process/noop":
		var entries []entry
		for _, concurrency := range []int{50, 200} {
			entries = append(entries, entry{"bullmq", fmt.Sprintf("concurrency %d", concurrency),
				bullmqValue("process.mjs", map[string]any{"concurrency": concurrency})})
		}
		return entries
	case "memory/pending":
		return []entry{{"bullmq", "payload included", bullmqMemory(0)}}
	case "memory/scheduled":
		return []entry{{"bullmq", "payload included", bullmqMemory(24 * time.Hour)}}
	}
	return bullmqLatencyEntries(figureName)
}

// bullmqValue runs a script that reports one value.
func bullmqValue(script string, args map[string]any) func(context.Context, *env, int) (float64, error) {
	return func(ctx context.Context, env *env, n int) (float64, error) {
		var figures struct{ Value float64 }
		err := bullmqRun(ctx, env, script, with(args, "n", fewer(env, n, bullmqMost)), &figures)
		return figures.Value, err
	}
}

// bullmqMemory is what a task that waits takes in Redis. The script has ended when it is taken.
func bullmqMemory(delay time.Duration) func(context.Context, *env, int) (float64, error) {
	return func(ctx context.Context, env *env, n int) (float64, error) {
		return peerMemory(ctx, env, n, func() error {
			return bullmqRun(ctx, env, "store.mjs", map[string]any{"n": n, "delay": delay.Milliseconds()}, &struct{}{})
		})
	}
}

// bullmqRun runs a script and reads the line of JSON that it reports.
func bullmqRun(ctx context.Context, env *env, script string, args map[string]any, figures any) error {
	node, err := bullmqReady(ctx, env)
	if err != nil {
		return err
	}
	args = with(with(args, "redis", env.redisURL), "payload", string(payload))
	line, err := json.Marshal(args)
	if err != nil {
		return err
	}
	out, err := output(ctx, exec.Command(node, script, string(line)))
	if err != nil {
		return fmt.Errorf("%s: %w", script, err)
	}
	var about struct{ Versions string }
	if err := errors.Join(json.Unmarshal(out, figures), json.Unmarshal(out, &about)); err != nil {
		return fmt.Errorf("%s printed %q: %w", script, out, err)
	}
	env.note("bullmq", "%s", about.Versions)
	return nil
}

// bullmqReady is the path of node, once BullMQ is installed. A quick run installs nothing.
func bullmqReady(ctx context.Context, env *env) (node string, err error) {
	node, err = exec.LookPath("node")
	if err != nil {
		return "", fmt.Errorf("%w: no node here", errSkipped)
	}
	if _, err := os.Stat(filepath.Join(bullmqDir, "package-lock.json")); err != nil {
		return "", fmt.Errorf("%w: no folder %s here; run the bench in its own folder", errSkipped, bullmqDir)
	}
	// npm writes this file last, so a folder that an interrupted install has left does not count.
	if _, err := os.Stat(filepath.Join(bullmqDir, "node_modules", ".package-lock.json")); err == nil {
		return node, nil
	}
	if env.quick {
		return "", fmt.Errorf("%w: BullMQ is not installed, and a quick run does not install it", errSkipped)
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		return "", fmt.Errorf("%w: no npm here to install BullMQ", errSkipped)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, bullmqInstall, errors.New("npm took too long"))
	defer cancel()
	if _, err := output(ctx, exec.Command(npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund")); err != nil {
		return "", fmt.Errorf("%w: BullMQ cannot be installed: %w", errSkipped, err)
	}
	return node, nil
}

// output runs a program in the scripts' folder and returns what it prints; the end of its errors is in the error.
func output(ctx context.Context, cmd *exec.Cmd) ([]byte, error) {
	var out, errs bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = bullmqDir, &out, &errs
	c, err := startChild(cmd, syscall.SIGKILL)
	if err != nil {
		return nil, err
	}
	if err := c.wait(ctx); err != nil {
		const most = 2000
		text := errs.Bytes()
		return nil, fmt.Errorf("%w\n%s", err, text[max(0, len(text)-most):])
	}
	return out.Bytes(), nil
}

// with is a copy of args with one more.
func with(args map[string]any, name string, value any) map[string]any {
	all := map[string]any{name: value}
	for k, v := range args {
		all[k] = v
	}
	return all
}
