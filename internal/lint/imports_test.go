package lint

import "testing"

func TestImports(t *testing.T) {
	imp := func(pkg, path string) string { return "package " + pkg + "\nimport \"" + path + "\"\n" }
	runPlanted(t, imports, []planted{
		{"root imports a leaf", files{"a.go": imp("dispatch", module+"/scheduler")}, nil},
		{"root imports clockwork", files{"a.go": imp("dispatch", clockwork)}, nil},
		{"root imports Redis", files{"a.go": imp("dispatch", goRedis)}, []string{`a.go:2: . may not import "` + goRedis}},
		{"root imports its store", files{"a.go": imp("dispatch", module+"/redisstore")}, []string{"may not import"}},
		{"leaf imports the root", files{"worker/a.go": imp("worker", module)}, []string{"worker may not import"}},
		{"leaf imports a sibling", files{"cluster/a.go": imp("cluster", module+"/scheduler")}, []string{"cluster may not import"}},
		{"a package is not its children", files{"a.go": imp("dispatch", module+"/cluster/k8s")}, []string{"may not import"}},
		{"a module is all its packages", files{"redisstore/a.go": imp("redisstore", redsync+"/redis/goredis/v9")}, nil},
		{"a module is not a longer name", files{"scheduler/a.go": imp("scheduler", xTime+"zone")}, []string{"may not import"}},
		{"tests import anything of ours", files{"worker/a_test.go": imp("worker_test", module+"/dispatchtest")}, nil},
		{"tests import miniredis", files{"a_test.go": imp("dispatch", miniredis)}, nil},
		{"tests import a stranger", files{"a_test.go": imp("dispatch", "github.com/stretchr/testify")}, []string{"may not import"}},
		{"production imports miniredis", files{"redisstore/a.go": imp("redisstore", miniredis)}, []string{"may not import"}},
		{"production imports the suite", files{"redisstore/a.go": imp("redisstore", module+"/redisstore/storetest")}, []string{"may not import"}},
		{"production imports testing", files{"worker/a.go": imp("worker", "net/http/httptest")}, []string{"may not import"}},
		{"internal imports the root", files{"internal/lifecycle/a.go": imp("lifecycle", module)}, []string{"may not import"}},
		{"storetest imports a store", files{"redisstore/storetest/a.go": imp("storetest", module+"/redisstore")}, []string{"may not import"}},
		{"examples use dispatchtest", files{"examples/x/main.go": imp("main", module+"/dispatchtest")}, nil},
		{"bench is free", files{"bench/peer/main.go": imp("peer", "github.com/hibiken/asynq")}, nil},
		{"unknown package, once", files{"util/a.go": "package util", "util/b.go": "package util"}, []string{"util: package is not in the layout"}},
	})
}

// The table itself must not allow what its comment rules out.
func TestLayoutHasOneDirection(t *testing.T) {
	for _, leaf := range []string{"scheduler", "worker", "cluster"} {
		allow, ok := allowed(leaf)
		if !ok {
			t.Errorf("%s is not in the layout", leaf)
		}
		for _, other := range []string{".", "scheduler", "worker", "cluster", "redisstore", "dispatchtest"} {
			if permits(allow, module+"/"+other) || other == "." && permits(allow, module) {
				t.Errorf("%s may import %s", leaf, other)
			}
		}
	}
}
