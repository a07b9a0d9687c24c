package lint

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// luaDir holds one script per state transition.
const luaDir = "redisstore/lua"

// script is one Lua file, taken apart for the rules. code and bare have the length and the lines of the file, so a
// place in one is a place in the others.
type script struct {
	*file
	header []string // the comment lines at the top
	code   string   // comments blanked
	bare   string   // comments and the insides of strings blanked
}

func newScript(f *file) *script {
	s := &script{file: f}
	for line := range strings.Lines(f.text) {
		if !strings.HasPrefix(line, "--") {
			break
		}
		s.header = append(s.header, strings.TrimRight(line, "\r\n"))
	}
	s.code, s.bare = blank(f.text)
	return s
}

// name is the file's name without extension.
func (s *script) name() string { return strings.TrimSuffix(path.Base(s.path), ".lua") }

// at is a finding at a byte offset, or about the whole file if the offset is negative.
func (s *script) at(offset int, format string, args ...any) finding {
	f := finding{path: s.path, text: fmt.Sprintf(format, args...)}
	if offset >= 0 {
		f.line = 1 + strings.Count(s.text[:offset], "\n")
	}
	return f
}

// lua checks all scripts.
func lua(t *tree) []finding {
	var found []finding
	for _, f := range t.files {
		if f.dir() != luaDir || path.Ext(f.path) != ".lua" {
			continue
		}
		s := newScript(f)
		if strings.HasPrefix(s.name(), "lib_") { // functions that scripts share: they have no keys and no arguments
			found = append(found, luaForbidden(s)...)
			continue
		}
		for _, rule := range []func(*script) []finding{luaHeader, luaArguments, luaForbidden, luaKeys} {
			found = append(found, rule(s)...)
		}
	}
	return found
}

var longBracket = regexp.MustCompile(`^\[(=*)\[`)

// blank returns the text twice: without comments, and without comments and strings. What is left out becomes spaces.
func blank(text string) (code, bare string) {
	c, b := []byte(text), []byte(text)
	for i := 0; i < len(text); {
		rest := text[i:]
		n, comment := 1, false
		switch {
		case strings.HasPrefix(rest, "--"):
			n, comment = commentLength(rest), true
		case rest[0] == '\'' || rest[0] == '"':
			n = quotedLength(rest)
		case longBracket.MatchString(rest):
			n = bracketLength(rest)
		}
		for j := i; n > 1 && j < i+n; j++ {
			if text[j] == '\n' {
				continue
			}
			b[j] = ' '
			if comment {
				c[j] = ' '
			}
		}
		i += n
	}
	return string(c), string(b)
}

// commentLength is the length of the comment that s starts with: to the end of the line, or of the block.
func commentLength(s string) int {
	if longBracket.MatchString(s[2:]) {
		return 2 + bracketLength(s[2:])
	}
	if end := strings.IndexByte(s, '\n'); end >= 0 {
		return end
	}
	return len(s)
}

// bracketLength is the length of the [[…]] or [=[…]=] that s starts with.
func bracketLength(s string) int {
	level := longBracket.FindStringSubmatch(s)[1]
	if end := strings.Index(s, "]"+level+"]"); end >= 0 {
		return end + len(level) + 2
	}
	return len(s)
}

// quotedLength is the length of the quoted string that s starts with.
func quotedLength(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case s[0]:
			return i + 1
		}
	}
	return len(s)
}
