package lint

import (
	"go/ast"
	"slices"
	"strings"
)

// wallClock are the functions of package time that read or wait for the machine's clock.
var wallClock = []string{"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until"}

// wallClockAllowed names the files that may use the machine's clock all the same, each with the reason. An entry that is
// no longer needed is a finding.
var wallClockAllowed = map[string]string{
	"dispatchtest/dispatcher.go": "bounds in real time what a fake clock cannot end",
	"redisstore/persist.go":      "pauses between two tries of one call; what is stored follows the clock of Redis",
}

// clock checks that time enters by Options.Clock, as an argument, or from Redis: code that asks the machine cannot be
// tested without sleeping, and compares two machines' clocks sooner or later.
func clock(t *tree) []finding { return clockExcept(t, wallClockAllowed) }

func clockExcept(t *tree, except map[string]string) []finding {
	var found []finding
	needed := map[string]bool{}
	for _, f := range t.goFiles() {
		if f.isTest() || below(f.dir(), "examples") || below(f.dir(), "bench") || below(f.dir(), "internal/redistest") {
			continue
		}
		uses := wallClockUses(t, f)
		if _, ok := except[f.path]; ok {
			needed[f.path] = len(uses) > 0
			continue
		}
		found = append(found, uses...)
	}
	for name := range except {
		if !needed[name] {
			found = append(found, finding{path: name, text: "is allowed to use the wall clock and does not: remove it from wallClockAllowed"})
		}
	}
	return found
}

// wallClockUses finds calls and mentions alike: `now: time.Now` hides a clock as well as time.Now() does.
func wallClockUses(t *tree, f *file) []finding {
	name := localName(f, "time")
	if name == "" {
		return nil
	}
	var found []finding
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok && x.Name == name && slices.Contains(wallClock, sel.Sel.Name) {
			found = append(found, t.at(sel.Pos(), "time.%s: take the time from the clock or as an argument", sel.Sel.Name))
		}
		return true
	})
	return found
}

// localName is the name under which a file knows a package of the standard library, or "".
func localName(f *file, imp string) string {
	for _, spec := range f.syntax.Imports {
		if strings.Trim(spec.Path.Value, `"`) != imp {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return imp
	}
	return ""
}
