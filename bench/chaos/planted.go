package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// runPlanted plants the bugs whose names match, one by one, and says of each whether its scenario found it. The code is 1 when one
// was not found.
func runPlanted(ctx context.Context, names *regexp.Regexp, s settings, out, complaints io.Writer) int {
	root, err := rootModule(ctx)
	if err != nil {
		fmt.Fprintln(complaints, err)
		return 2
	}
	code, matched := 0, false
	for _, p := range plants {
		if !names.MatchString(p.name) {
			continue
		}
		matched = true
		row, err := p.grow(ctx, root, s)
		verdict := "found"
		switch {
		case err != nil:
			verdict, code = "ERROR "+err.Error(), 1
		case row.Pass:
			verdict, code = "NOT FOUND", 1
		}
		fmt.Fprintf(out, "%-32s %-24s %s\n", p.name, p.scenario, verdict)
		if err == nil && len(row.Why) > 0 {
			fmt.Fprintf(out, "    %s\n", row.Why[0])
		}
	}
	if !matched {
		fmt.Fprintf(complaints, "-run: no planted bug matches %q\n", names)
		return 2
	}
	return code
}

// grow builds the program with the bug and returns the row of its scenario.
func (p plant) grow(ctx context.Context, root string, s settings) (*Row, error) {
	dir, err := os.MkdirTemp("", "chaos-planted-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	binary, err := p.build(ctx, root, dir)
	if err != nil {
		return nil, err
	}
	args := []string{"-run", "^" + regexp.QuoteMeta(p.scenario) + "$", "-json", "-keep", dir, "-seed", strconv.FormatUint(s.seed, 10)}
	if s.quick {
		args = append(args, "-quick")
	} else {
		args = append(args, "-for", s.length.String())
	}
	run := exec.CommandContext(ctx, binary, args...)
	var said bytes.Buffer
	run.Stderr = &said
	text, err := run.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return nil, err
	}
	row := new(Row)
	if err := json.Unmarshal(text, row); err != nil {
		return nil, fmt.Errorf("the run has no row: %w: %s", err, said.String())
	}
	return row, nil
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
	build := exec.CommandContext(ctx, "go", "build", "-overlay", overlayFile, "-o", binary, "github.com/dispatchkit/dispatch/bench/chaos")
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
