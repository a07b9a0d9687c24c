package lint

import (
	"slices"
	"strconv"
	"strings"
)

const module = "github.com/dispatchkit/dispatch"

// The modules that the project may depend on.
const (
	clockwork = "github.com/jonboulle/clockwork"
	goRedis   = "github.com/redis/go-redis/v9"
	goleak    = "go.uber.org/goleak"
	miniredis = "github.com/alicebob/miniredis/v2"
	msgpack   = "github.com/vmihailenco/msgpack/v5"
	redsync   = "github.com/go-redsync/redsync/v4"
	webhooks  = "github.com/standard-webhooks/standard-webhooks/libraries"
	xTerm     = "golang.org/x/term"
	xTime     = "golang.org/x/time"
)

const anything = "..."

// testModules are what tests may import besides all packages of the project.
var testModules = []string{clockwork, goRedis, goleak, miniredis, msgpack, redsync, webhooks, xTime}

// layout is the dependency graph: each package with all that it may import. The standard library is free, except for
// its testing packages: a program that uses Dispatch must not link them. Packages of the project are named by
// directory, and nothing below the root imports the root or a sibling, so there is one direction to read the code in.
var layout = []struct {
	pkg   string   // "x/..." stands for all packages below x
	allow []string // directories match exactly, modules with all their packages
}{
	// The words and the loop, and the leaves that do not know what a Task is.
	{".", []string{"scheduler", "worker", "cluster", "internal/cron", "internal/lifecycle", "internal/testsignal", clockwork}},
	{"scheduler", []string{xTime}},
	{"worker", []string{"internal/lifecycle", "internal/testsignal"}},
	{"cluster", []string{"internal/lifecycle", "internal/testsignal", clockwork}},
	{"cluster/k8s", []string{"cluster", clockwork, "k8s.io"}},

	// Redis, on top of the root.
	{"redisstore", []string{".", "cluster", "internal/lifecycle", "internal/testsignal", clockwork, goRedis, redsync, msgpack}},

	// For tests: of back ends, of users, of our own.
	{"redisstore/storetest", []string{".", "cluster", "testing"}},
	{"dispatchtest", []string{".", "cluster", "worker", "redisstore", "internal/testsignal", clockwork, goRedis, miniredis,
		"testing", "net/http/httptest"}},
	{"internal/redistest", []string{"testing"}},

	{"internal/cron", nil},
	{"internal/e2e", nil}, // tests only
	{"internal/lifecycle", nil},
	{"internal/lint", nil},
	{"internal/testsignal", nil},

	{"examples/...", []string{".", "cluster", "worker", "redisstore", "dispatchtest", "internal/redistest", clockwork, goRedis,
		miniredis, webhooks, xTerm, "net/http/httptest"}},
	{"bench/...", []string{anything}},
}

// imports checks every import against the layout.
func imports(t *tree) []finding {
	var found []finding
	unknown := map[string]bool{}
	for _, f := range t.goFiles() {
		allow, ok := allowed(f.dir())
		if !ok {
			if !unknown[f.dir()] {
				unknown[f.dir()] = true
				found = append(found, finding{path: f.dir(), text: "package is not in the layout: add it to internal/lint/imports.go, with what it may import"})
			}
			continue
		}
		for _, spec := range f.syntax.Imports {
			imp, _ := strconv.Unquote(spec.Path.Value)
			if f.isTest() && (inProject(imp) || isTesting(imp) || permits(testModules, imp)) {
				continue
			}
			if !permits(allow, imp) {
				found = append(found, t.at(spec.Pos(), "%s may not import %q: see layout in internal/lint/imports.go", f.dir(), imp))
			}
		}
	}
	return found
}

// allowed finds the row of the layout for a package.
func allowed(dir string) ([]string, bool) {
	for _, row := range layout {
		if root, ok := strings.CutSuffix(row.pkg, "/..."); row.pkg == dir || ok && below(dir, root) {
			return row.allow, true
		}
	}
	return nil, false
}

// permits says whether one of the entries covers the import path.
func permits(allow []string, imp string) bool {
	if slices.Contains(allow, anything) {
		return true
	}
	if inProject(imp) {
		return slices.Contains(allow, directory(imp))
	}
	if isStandard(imp) {
		return !isTesting(imp) || slices.Contains(allow, imp)
	}
	return slices.ContainsFunc(allow, func(entry string) bool { return below(imp, entry) })
}

func inProject(imp string) bool { return below(imp, module) }

// directory is the import path of a project's package as a directory from the root.
func directory(imp string) string {
	if imp == module {
		return "."
	}
	return strings.TrimPrefix(imp, module+"/")
}

// isStandard goes by the rule of the go command: the first element of any other path holds a dot.
func isStandard(imp string) bool {
	first, _, _ := strings.Cut(imp, "/")
	return !strings.Contains(first, ".")
}

func isTesting(imp string) bool { return below(imp, "testing") || imp == "net/http/httptest" }
