package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"
)

// calledWith runs the program and returns its code and what it has written. It leaves no files.
func calledWith(t *testing.T, s settings) (code int, out, complaints string) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	var o, c bytes.Buffer
	code = run(s, &o, &c)
	requireEmpty(t, os.TempDir())
	return code, o.String(), c.String()
}

func requireEmpty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestWithoutRedisNothingIsTried(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for name, s := range map[string]settings{"all": {all: true}, "planted": {planted: true}} {
		s.length, s.quick = time.Minute, true
		code, out, complaints := calledWith(t, s)
		if code != 2 || out != "" || !strings.Contains(complaints, "redis-server") {
			t.Errorf("%s: code %d, %q, %q", name, code, out, complaints)
		}
	}
}

// Neither list needs Redis, or the go command.
func TestListsNeedNothing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for want, s := range map[string]settings{
		"kill-nine\n": {only: "^kill-nine$"},
		"unfenced-settle                      random-mix\n": {only: "^unfenced-settle$", planted: true},
	} {
		s.length, s.list = time.Minute, true
		if code, out, complaints := calledWith(t, s); code != 0 || !strings.HasPrefix(out, want) {
			t.Errorf("code %d, %q, %q, want %q", code, out, complaints, want)
		}
	}
}

func TestWrongCalls(t *testing.T) {
	for want, s := range map[string]settings{
		"-for":                   {all: true, length: -time.Second},
		"-for: 0s":               {all: true},
		"no scenario matches":    {only: "^no-such$", length: time.Minute},
		"no planted bug matches": {only: "^kill-nine$", planted: true, length: time.Minute},
		"say -all":               {length: time.Minute},
	} {
		if code, _, complaints := calledWith(t, s); code != 2 || !strings.Contains(complaints, want) {
			t.Errorf("code %d, %q, want %q", code, complaints, want)
		}
	}
}
