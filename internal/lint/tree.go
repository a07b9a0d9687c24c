package lint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strings"
)

// finding is one broken rule at one place.
type finding struct {
	path string
	line int // 0: the whole file or package
	text string
}

func (f finding) String() string {
	if f.line == 0 {
		return f.path + ": " + f.text
	}
	return fmt.Sprintf("%s:%d: %s", f.path, f.line, f.text)
}

// file is one source file. syntax is set for Go only, and partial if the file does not parse.
type file struct {
	path   string // from the root, with slashes
	text   string
	syntax *ast.File
}

// dir is the directory from the root, "." for the root: within this repository, the name of a package.
func (f *file) dir() string { return path.Dir(f.path) }

func (f *file) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

// tree is the source of the repository: Go, Lua, and go.mod files, nested modules included.
type tree struct {
	fset   *token.FileSet
	files  []*file // in lexical order
	broken []finding
}

// load reads the tree. A file that does not parse is a finding, not an error: the other rules still run on the rest.
func load(root fs.FS) (*tree, error) {
	t := &tree{fset: token.NewFileSet()}
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return skip(name)
		case path.Ext(name) != ".go" && path.Ext(name) != ".lua" && d.Name() != "go.mod":
			return nil
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		f := &file{path: name, text: string(text)}
		if path.Ext(name) == ".go" {
			if f.syntax, err = parser.ParseFile(t.fset, name, text, parser.ParseComments); err != nil {
				t.broken = append(t.broken, finding{path: name, text: "does not parse: " + err.Error()})
			}
		}
		t.files = append(t.files, f)
		return nil
	})
	return t, err
}

// skip leaves out the directories that the go command leaves out, and what npm installs for the bench.
func skip(dir string) error {
	base := path.Base(dir)
	if dir != "." && (strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "testdata" || base == "vendor" ||
		base == "node_modules") {
		return fs.SkipDir
	}
	return nil
}

// goFiles are the Go files that have syntax to look at.
func (t *tree) goFiles() []*file {
	var files []*file
	for _, f := range t.files {
		if f.syntax != nil && f.syntax.Name != nil {
			files = append(files, f)
		}
	}
	return files
}

// line is the line of a place in Go syntax.
func (t *tree) line(pos token.Pos) int { return t.fset.Position(pos).Line }

// at is a finding at a place in Go syntax.
func (t *tree) at(pos token.Pos, format string, args ...any) finding {
	p := t.fset.Position(pos)
	return finding{path: p.Filename, line: p.Line, text: fmt.Sprintf(format, args...)}
}

// below says whether dir is root or inside it.
func below(dir, root string) bool { return dir == root || strings.HasPrefix(dir, root+"/") }
