package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestScenariosAreComplete(t *testing.T) {
	kebab := regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)
	seen := map[string]bool{}
	for _, sc := range catalogue() {
		if !kebab.MatchString(sc.Name) || seen[sc.Name] {
			t.Errorf("scenario %q: its name is taken or not in kebab-case", sc.Name)
		}
		seen[sc.Name] = true
		if sc.Doc == "" || sc.Run == nil {
			t.Errorf("scenario %s has no Doc or no Run", sc.Name)
		}
	}
}

// reply-lost promises every script.
func TestReplyLostKnowsEveryScript(t *testing.T) {
	root, err := rootModule(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, "redisstore", "lua", "*.lua"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	missing := map[string]bool{}
	for _, f := range files {
		if name := strings.TrimSuffix(filepath.Base(f), ".lua"); !strings.HasPrefix(name, "lib_") {
			missing[name] = true
		}
	}
	for _, step := range lossSteps {
		if !missing[step.script] {
			t.Errorf("%s is no script, or comes twice", step.script)
		}
		delete(missing, step.script)
	}
	delete(missing, "mark") // goes with others, to servers with replicas: see failoverWait
	for name := range missing {
		t.Errorf("no step loses the reply of %s", name)
	}
}
