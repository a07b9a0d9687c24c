package lint

import "testing"

func TestClock(t *testing.T) {
	const now = "package a\nimport \"time\"\nvar t = time.Now()\n"
	runPlanted(t, func(tr *tree) []finding { return clockExcept(tr, nil) }, []planted{
		{"call", files{"a/a.go": now}, []string{"a/a.go:3: time.Now"}},
		{"mention", files{"a/a.go": "package a\nimport \"time\"\nvar now = time.Now\n"}, []string{"time.Now"}},
		{"other name", files{"a/a.go": "package a\nimport clock \"time\"\nfunc f() { clock.Sleep(1) }\n"}, []string{"time.Sleep"}},
		{"durations are no clock", files{"a/a.go": "package a\nimport \"time\"\nvar d = time.Second\n"}, nil},
		{"another package's Now", files{"a/a.go": "package a\nimport \"x/clock\"\nvar t = clock.Now()\n"}, nil},
		{"exempt", files{"a/a_test.go": now, "examples/a/main.go": now, "bench/a.go": now, "internal/redistest/a.go": now}, nil},
	})
	except := func(name string) func(*tree) []finding {
		return func(t *tree) []finding { return clockExcept(t, map[string]string{name: "a reason"}) }
	}
	runPlanted(t, except("a/a.go"), []planted{
		{"allowed", files{"a/a.go": now}, nil},
		{"allowed for nothing", files{"a/a.go": "package a"}, []string{"a/a.go: is allowed to use the wall clock and does not"}},
	})
}
