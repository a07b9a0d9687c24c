package lint

import "testing"

func TestPackageDocs(t *testing.T) {
	const good = "// Package a does.\n//\n// # What this does not promise\n//\n// Much.\npackage a\n"
	runPlanted(t, packageDocs, []planted{
		{"said in one of two files", files{"a/doc.go": good, "a/b.go": "package a"}, nil},
		{"no doc", files{"a/a.go": "package a", "a/b.go": "package a"}, []string{"a: package doc has no section"}},
		{"mentioned, not a heading", files{"a/a.go": "// Package a: What this does not promise.\npackage a"}, []string{"no section"}},
		{"internal, programs, examples", files{"internal/a/a.go": "package a", "cmd/a.go": "package main", "examples/a/a.go": "package a"}, nil},
	})
}

func TestExportedDocs(t *testing.T) {
	a := func(text string) files { return files{"a/a.go": "package a\n" + text} }
	runPlanted(t, exportedDocs, []planted{
		{"function", a("func F() {}"), []string{"a/a.go:2: function F is exported"}},
		{"function with a directive only", a("//go:noinline\nfunc F() {}"), []string{"function F"}},
		{"documented function", a("// F does.\nfunc F() {}"), nil},
		{"method", a("func (t *T[K]) M() {}"), []string{"function M"}},
		{"method of an unexported type", a("func (t *t) M() {}"), nil},
		{"type", a("type T int"), []string{"type T"}},
		{"types in a block", a("// Block.\ntype (\n\tT int\n\tU int // U is.\n)"), []string{"type T"}},
		{"fields", a("// T is.\ntype T struct {\n\tA int\n\tB int // is B\n\t// C is.\n\tC int\n\td int\n\tD, E int\n\tEmbedded\n}"),
			[]string{"a.go:4: field A", "field D", "field E"}},
		{"fields below a comment that names them", a("// T is.\ntype T struct {\n\t// A goes up to B.\n\tA int\n\tB int\n\tC int\n}"), []string{"field C"}},
		{"fields apart from it", a("// T is.\ntype T struct {\n\t// A goes up to B.\n\tA int\n\n\tB int\n}"), []string{"field B"}},
		{"fields of an unexported type", a("type t struct{ A int }"), nil},
		{"methods of an interface", a("// I is.\ntype I interface {\n\tM()\n\t// N does.\n\tN()\n\tEmbedded\n}"), []string{"method M"}},
		{"const block", a("// All of them.\nconst (\n\tA = iota\n\tB\n)"), nil},
		{"const block without comment", a("const (\n\tA = iota // A is.\n\tB\n)"), []string{"const B"}},
		{"var", a("var A, b = 1, 2"), []string{"var A"}},
		{"tests and internal", files{"a/a_test.go": "package a\nfunc F() {}", "internal/a/a.go": "package a\nfunc F() {}"}, nil},
	})
}
