package lint

import (
	"strings"
	"testing"
)

func TestSize(t *testing.T) {
	lines := func(first string, n int) string { return first + strings.Repeat("\n", n) }
	runPlanted(t, size, []planted{
		{"at the limit", files{
			"a.go": lines("package a", maxSource), "a_test.go": lines("package a", maxTest), "redisstore/lua/a.lua": lines("--", maxLua),
		}, nil},
		{"over it", files{
			"a.go": lines("package a", maxSource+1), "a_test.go": lines("package a", maxTest+1), "b.lua": lines("--", maxLua+1),
		}, []string{"a.go: 401 lines", "a_test.go: 601 lines", "b.lua: 201 lines"}},
	})
}

func TestGoMod(t *testing.T) {
	runPlanted(t, goMod, []planted{
		{"line", files{"go.mod": "module a\n\nreplace b => ../b\n"}, []string{"go.mod:3: replace"}},
		{"block", files{"go.mod": "module a\nreplace (\n\tb => ../b\n)\n"}, []string{"go.mod:2: replace"}},
		{"nested modules may", files{"go.mod": "module a\n", "bench/go.mod": "module a/bench\nreplace a => ../\n"}, nil},
	})
}
