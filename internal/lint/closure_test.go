package lint

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// A program that uses the root with a store of its own must not pay for Redis: nothing that the root imports, at any
// depth, comes from a module that is not on this list.
func TestRootLinksNoRedis(t *testing.T) {
	out, err := exec.Command("go", "list", "-e", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", module).Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for _, mod := range slices.Compact(strings.Fields(string(out))) {
		if !slices.Contains([]string{module, clockwork, xTime}, mod) {
			t.Errorf("the root links %s", mod)
		}
	}
}
