package lint

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the snippets of README.md from the examples")

func TestReadmeSnippetsAreCodeThatCompiles(t *testing.T) {
	const root = "../.."
	path := filepath.Join(root, "README.md")
	readme, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	fresh, err := refresh(string(readme), func(file string) (string, error) {
		b, err := os.ReadFile(filepath.Join(root, file))
		return string(b), err
	})
	if err != nil {
		t.Fatal(err)
	}
	if fresh == string(readme) {
		return
	}
	if *update {
		if err := os.WriteFile(path, []byte(fresh), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Error("README.md shows code that is not that of the examples; go test ./internal/lint -update rewrites it")
}

func TestRefreshTakesTheCodeOfTheSource(t *testing.T) {
	source := "func f() {\n\t// snippet a\n\tx := 1\n\tif x > 0 {\n\t\tg()\n\t}\n\t// end snippet\n}\n"
	readme := "text\n<!-- snippet f.go a -->\n```go\nold\n```\nmore\n"
	got, err := refresh(readme, func(string) (string, error) { return source, nil })
	want := "text\n<!-- snippet f.go a -->\n```go\nx := 1\nif x > 0 {\n\tg()\n}\n```\nmore\n"
	if err != nil || got != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	if _, err := refresh(readme, func(string) (string, error) { return "nothing", nil }); err == nil {
		t.Error("a snippet without source was accepted")
	}
}
