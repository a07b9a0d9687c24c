package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/dispatchkit/dispatch/internal/redistest"
)

// orderlyLimit is how long a command may take to remove what it has made, once it was told to end.
const orderlyLimit = 30 * time.Second

// orderly is a command that ctx ends by a signal to its group, so that it can end in order and what it has started ends too. Its
// temporary files go to dir, so that none stays that it does not remove. It is killed when the thread that starts it ends.
func orderly(ctx context.Context, dir string, end syscall.Signal, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	cmd.Cancel = func() error {
		if err := syscall.Kill(-cmd.Process.Pid, end); err != nil { // it has no group of its own on this system
			return cmd.Process.Signal(end)
		}
		return nil
	}
	cmd.WaitDelay = orderlyLimit
	cmd.SysProcAttr = redistest.ParentDeath()
	return cmd
}

// build makes the program from a copy of the file that has the bug. Embedded files are replaced like others.
func (p plant) build(ctx context.Context, root, dir string) (binary string, err error) {
	file := filepath.Join(root, filepath.FromSlash(p.file))
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	mutant, err := p.mutate(string(text))
	if err != nil {
		return "", err
	}
	copied := filepath.Join(dir, filepath.Base(file))
	if err := os.WriteFile(copied, []byte(mutant), 0o644); err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {file: copied}})
	if err != nil {
		return "", err
	}
	overlayFile := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlayFile, overlay, 0o644); err != nil {
		return "", err
	}
	binary = filepath.Join(dir, "chaos")
	build := orderly(ctx, dir, syscall.SIGINT,
		"go", "build", "-overlay", overlayFile, "-o", binary, "github.com/dispatchkit/dispatch/bench/chaos")
	if said, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s does not build: %w: %s", p.name, err, said)
	}
	return binary, nil
}

// mutate puts the bug into the text of the file.
func (p plant) mutate(text string) (string, error) {
	if n := strings.Count(text, p.old); n != 1 {
		return "", fmt.Errorf("%s: what it replaces is %d times in %s, not once", p.name, n, p.file)
	}
	return strings.Replace(text, p.old, p.new, 1), nil
}

// rootModule is the directory of the product's sources.
func rootModule(ctx context.Context) (string, error) {
	text, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/dispatchkit/dispatch").Output()
	if err != nil {
		return "", fmt.Errorf("-planted needs the sources and has to be called in the directory bench: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}
