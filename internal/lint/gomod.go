package lint

import (
	"regexp"
	"strings"
)

var replaceDirective = regexp.MustCompile(`(?m)^[ \t]*replace\b`)

// goMod checks that the root module replaces nothing: users' builds ignore a replace, so they would get other code than
// the tests ran. Nested modules need theirs to build from a plain clone.
func goMod(t *tree) []finding {
	for _, f := range t.files {
		if f.path != "go.mod" {
			continue
		}
		if at := replaceDirective.FindStringIndex(f.text); at != nil {
			return []finding{{path: f.path, line: 1 + strings.Count(f.text[:at[0]], "\n"), text: "replace is ignored in users' builds"}}
		}
	}
	return nil
}
