package lint

import (
	"fmt"
	"strings"
)

// snippets checks that the code in README.md is code that compiles. A block below a line
//
//	<!-- snippet FILE NAME -->
//
// must be what stands in FILE between "// snippet NAME" and "// end snippet", without the indentation they share.
// refresh returns the README with every such block replaced by its source.
func refresh(readme string, read func(file string) (string, error)) (string, error) {
	var out strings.Builder
	rest := readme
	for {
		before, after, found := strings.Cut(rest, "<!-- snippet ")
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		head, body, _ := strings.Cut(after, "-->\n```go\n")
		_, tail, closed := strings.Cut(body, "```")
		words := strings.Fields(head)
		if len(words) != 2 || !closed {
			return "", fmt.Errorf("README.md: snippet %q has no file, no name or no code block", head)
		}
		source, err := read(words[0])
		if err != nil {
			return "", err
		}
		code, err := cutSnippet(source, words[1])
		if err != nil {
			return "", fmt.Errorf("%s: %w", words[0], err)
		}
		fmt.Fprintf(&out, "<!-- snippet %s-->\n```go\n%s```", head, code)
		rest = tail
	}
}

// cutSnippet finds a snippet in a source and takes its indentation off.
func cutSnippet(source, name string) (string, error) {
	_, after, found := strings.Cut(source, "// snippet "+name+"\n")
	code, _, closed := strings.Cut(after, "// end snippet\n")
	if !found || !closed {
		return "", fmt.Errorf("no snippet %q", name)
	}
	lines := strings.Split(strings.TrimRight(code, "\t\n"), "\n")
	indent := lines[0][:len(lines[0])-len(strings.TrimLeft(lines[0], "\t"))]
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], indent)
	}
	return strings.Join(lines, "\n") + "\n", nil
}
