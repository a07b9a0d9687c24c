package lint

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

// rules are all rules, in the order in which it helps to read their findings.
var rules = []struct {
	name  string
	check func(*tree) []finding
}{
	{"parses", func(t *tree) []finding { return t.broken }},
	{"imports", imports},
	{"package docs", packageDocs},
	{"exported docs", exportedDocs},
	{"clock", clock},
	{"size", size},
	{"lua", lua},
	{"go.mod", goMod},
}

func TestRepository(t *testing.T) {
	repository, err := load(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	if len(repository.files) == 0 {
		t.Fatal("found no source at all: is the path to the root right?")
	}
	for _, rule := range rules {
		t.Run(rule.name, func(t *testing.T) {
			for _, f := range rule.check(repository) {
				t.Error(f)
			}
		})
	}
}

func TestBrokenFileIsAFinding(t *testing.T) {
	tree := plant(t, files{"a/a.go": "package a\nfunc {", "b/b.go": "package b"})
	if len(tree.broken) != 1 || tree.broken[0].path != "a/a.go" {
		t.Errorf("got %v, want one finding for a/a.go", tree.broken)
	}
}

func TestSkippedDirectories(t *testing.T) {
	tree := plant(t, files{
		".git/a.go": "package a", "_old/a.go": "package a", "x/testdata/a.go": "not Go", "x/vendor/a/a.go": "package a",
		"x/x.go": "package x",
	})
	if len(tree.files) != 1 || tree.files[0].path != "x/x.go" {
		t.Errorf("got %d files, want only x/x.go", len(tree.files))
	}
}

// files is a source tree by path.
type files map[string]string

func plant(t *testing.T, f files) *tree {
	t.Helper()
	root := fstest.MapFS{}
	for name, text := range f {
		root[name] = &fstest.MapFile{Data: []byte(text)}
	}
	tree, err := load(root)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// planted is a tree and what a rule must find in it: parts of the findings, in order. None means that it is clean.
type planted struct {
	name  string
	files files
	want  []string
}

func runPlanted(t *testing.T, check func(*tree) []finding, cases []planted) {
	t.Helper()
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			found := check(plant(t, tc.files))
			for i := range max(len(found), len(tc.want)) {
				switch {
				case i >= len(found):
					t.Errorf("no finding for %q", tc.want[i])
				case i >= len(tc.want):
					t.Errorf("unexpected: %v", found[i])
				case !strings.Contains(found[i].String(), tc.want[i]):
					t.Errorf("got  %v\nwant %s", found[i], tc.want[i])
				}
			}
		})
	}
}
