package audit

import (
	"os/exec"
	"strings"
	"testing"
)

// TestIndependent: the checker shares no code with what it checks. Its tests may.
func TestIndependent(t *testing.T) {
	t.Parallel()
	const product, self = "github.com/dispatchkit/dispatch", "github.com/dispatchkit/dispatch/bench/chaos/audit"
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", self).Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := false
	for _, pkg := range strings.Fields(string(out)) {
		if seen = seen || pkg == self; pkg != self && (pkg == product || strings.HasPrefix(pkg, product+"/")) {
			t.Errorf("it imports %s", pkg)
		}
	}
	if !seen {
		t.Fatal("go list does not know this package")
	}
}
