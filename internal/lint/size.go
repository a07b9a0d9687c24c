package lint

import (
	"fmt"
	"path"
	"strings"
)

// Lines per file. They are far above what is usual here: at the limit it is time to ask what else the file is about.
const (
	maxSource = 400
	maxTest   = 600
	maxLua    = 200 // claim is one decision and cannot be cut in two; the others have half of it
)

// size checks the length of files.
func size(t *tree) []finding {
	var found []finding
	for _, f := range t.files {
		limit := maxSource
		switch {
		case path.Ext(f.path) == ".lua":
			limit = maxLua
		case f.isTest():
			limit = maxTest
		}
		if n := strings.Count(f.text, "\n"); n > limit {
			found = append(found, finding{path: f.path, text: fmt.Sprintf("%d lines, more than %d: split it by duty", n, limit)})
		}
	}
	return found
}
