package lint

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"unicode"
)

// isPublic says whether users can see what the file declares: not in a test, a program, an example, or internal.
func isPublic(f *file) bool {
	return !f.isTest() && f.syntax.Name.Name != "main" &&
		!below(f.dir(), "internal") && !below(f.dir(), "examples") && !below(f.dir(), "bench")
}

const disclaimer = "\n# What this does not promise\n"

// packageDocs checks that the documentation of each public package ends expectations, not only raises them.
func packageDocs(t *tree) []finding {
	var dirs []string
	said := map[string]bool{}
	for _, f := range t.goFiles() {
		if !isPublic(f) {
			continue
		}
		if _, seen := said[f.dir()]; !seen {
			said[f.dir()] = false
			dirs = append(dirs, f.dir())
		}
		if strings.Contains(f.syntax.Doc.Text(), disclaimer) {
			said[f.dir()] = true
		}
	}
	var found []finding
	for _, dir := range dirs {
		if !said[dir] {
			found = append(found, finding{path: dir, text: "package doc has no section \"" + strings.TrimSpace(disclaimer) + "\""})
		}
	}
	return found
}

// exportedDocs checks that every exported name of a public package has a comment. One comment on a const or var block
// covers the block; a field may have its comment at the end of the line.
func exportedDocs(t *tree) []finding {
	d := docs{tree: t}
	for _, f := range t.goFiles() {
		if !isPublic(f) {
			continue
		}
		for _, decl := range f.syntax.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				if decl.Name.IsExported() && receiverExported(decl) && !hasText(decl.Doc) {
					d.report(decl.Name, "function")
				}
			case *ast.GenDecl:
				d.undocumented(decl)
			}
		}
	}
	return d.found
}

// docs gathers the exported names that lack a comment.
type docs struct {
	tree  *tree
	found []finding
}

func (d *docs) report(name *ast.Ident, kind string) {
	d.found = append(d.found, d.tree.at(name.Pos(), "%s %s is exported and has no comment", kind, name.Name))
}

// receiverExported is true for functions, and for methods of exported types, generic ones included.
func receiverExported(decl *ast.FuncDecl) bool {
	if decl.Recv == nil || len(decl.Recv.List) == 0 {
		return true
	}
	expr := decl.Recv.List[0].Type
	for {
		switch e := expr.(type) {
		case *ast.StarExpr:
			expr = e.X
		case *ast.IndexExpr:
			expr = e.X
		case *ast.IndexListExpr:
			expr = e.X
		case *ast.Ident:
			return e.IsExported()
		default:
			return true
		}
	}
}

// undocumented reports what a const, var or type declaration leaves without a comment.
func (d *docs) undocumented(decl *ast.GenDecl) {
	for _, spec := range decl.Specs {
		switch spec := spec.(type) {
		case *ast.ValueSpec:
			if hasText(decl.Doc, spec.Doc, spec.Comment) {
				continue
			}
			for _, name := range spec.Names {
				if name.IsExported() {
					d.report(name, decl.Tok.String())
				}
			}
		case *ast.TypeSpec:
			if !spec.Name.IsExported() {
				continue
			}
			// In a parenthesised block the comment of the block says nothing about one type.
			if own := decl.Lparen == token.NoPos && hasText(decl.Doc); !own && !hasText(spec.Doc, spec.Comment) {
				d.report(spec.Name, "type")
			}
			d.undocumentedMembers(spec.Type)
		}
	}
}

// undocumentedMembers reports fields of a struct and methods of an interface. What is embedded documents itself. A
// comment also covers the members on the lines right after its own, if it names them.
func (d *docs) undocumentedMembers(typ ast.Expr) {
	var members *ast.FieldList
	kind := "field"
	switch typ := typ.(type) {
	case *ast.StructType:
		members = typ.Fields
	case *ast.InterfaceType:
		members, kind = typ.Methods, "method"
	default:
		return
	}
	var comment string // in force
	var last int       // line where the previous member ended
	for _, member := range members.List {
		switch {
		case hasText(member.Doc, member.Comment):
			comment = member.Doc.Text()
		case d.tree.line(member.Pos()) > last+1:
			comment = ""
		}
		for _, name := range member.Names {
			if name.IsExported() && !hasText(member.Doc, member.Comment) && !names(comment, name.Name) {
				d.report(name, kind)
			}
		}
		last = d.tree.line(member.End())
	}
}

// names says whether the comment holds the name as a word.
func names(comment, name string) bool {
	return slices.Contains(strings.FieldsFunc(comment, func(r rune) bool {
		return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}), name)
}

// hasText says whether one of the comments says something. A directive such as //go:embed does not.
func hasText(groups ...*ast.CommentGroup) bool {
	for _, g := range groups {
		if g.Text() != "" {
			return true
		}
	}
	return false
}
