package lint

import (
	"regexp"
	"strings"
)

// luaBans are constructs that no script may hold, each with what goes wrong otherwise.
var luaBans = []struct {
	pattern *regexp.Regexp
	strings bool // look inside strings too
	why     string
}{
	{regexp.MustCompile(`\b(cjson|cmsgpack|struct|bit)\s*\.`), false, "records are opaque to scripts, and miniredis has no cmsgpack, struct or bit"},
	{regexp.MustCompile(`\bredis\s*\.\s*(replicate_\w+|set_repl)`), false, "replication is by effects, always"},
	{regexp.MustCompile(`(?i)\bredis\.p?call\s*\(\s*['"]KEYS['"]`), true, "KEYS walks the whole server"},
	{regexp.MustCompile(`\btostring\s*\(`), false, "tostring keeps 14 digits: use string.format('%.0f', n)"},
	{regexp.MustCompile(`\b(now|seq|tat|token|\w+_(ms|us))\s*\.\.|\.\.\s*(now|seq|tat|token|\w+_(ms|us))\b`), false, "a number joined by .. keeps 14 digits: use string.format('%.0f', n)"},
	{regexp.MustCompile(`\bredis\.p?call\s*[^(\s]`), false, "call redis.call with parentheses and under its own name, so that its keys can be checked"},
}

var (
	luaTime    = regexp.MustCompile(`(?i)\bredis\.p?call\s*\(\s*['"]TIME['"]`)
	luaRounded = regexp.MustCompile(`\bmath\.(floor|ceil)\b`)
)

// luaForbidden checks the bans, that division is whole, and that a script sees one moment: TIME advances inside it.
func luaForbidden(s *script) []finding {
	var found []finding
	for _, ban := range luaBans {
		text := s.bare
		if ban.strings {
			text = s.code
		}
		for _, m := range ban.pattern.FindAllStringIndex(text, -1) {
			found = append(found, s.at(m[0], "%q: %s", strings.TrimSpace(text[m[0]:m[1]]), ban.why))
		}
	}
	offset := 0
	for line := range strings.Lines(s.bare) {
		if strings.Contains(line, "/") && !luaRounded.MatchString(line) {
			found = append(found, s.at(offset, "division without math.floor or math.ceil: stored numbers are whole"))
		}
		offset += len(line)
	}
	if times := luaTime.FindAllStringIndex(s.code, -1); len(times) > 1 {
		found = append(found, s.at(times[1][0], "TIME is read more than once"))
	}
	return found
}

var (
	luaCall       = regexp.MustCompile(`\bredis\.p?call\s*\(\s*(?:['"](\w+)['"])?\s*,?\s*([^,)]*)`)
	luaKey        = regexp.MustCompile(`^KEYS\[[^\]]+\]$`)
	luaLocal      = regexp.MustCompile(`\blocal\s+([\w\s,]+?)\s*=\s*([^\n]+)`)
	luaLoop       = regexp.MustCompile(`\bfor\s+\w+\s*,\s*(\w+)\s+in\s+ipairs\s*\(\s*(?:KEYS|\{(?:\s*KEYS\[[^\]]+\]\s*,?)+\})\s*\)`)
	luaParameters = regexp.MustCompile(`\bfunction\b[\s\w.:]*\(([^)]*)\)`)
	luaJoinedKey  = regexp.MustCompile(`KEYS\[[^\]]*\]\s*\.\.|\.\.\s*KEYS\[`)
)

// luaKeys checks that every command works on a declared key: KEYS[n], or a name for one. A key that is built in the
// script runs on a single server and breaks under Redis Cluster and ACL patterns.
func luaKeys(s *script) []finding {
	var found []finding
	keys := s.keyNames()
	for _, m := range luaCall.FindAllStringSubmatchIndex(s.code, -1) {
		if m[2] < 0 {
			found = append(found, s.at(m[0], "the command of redis.call is not a literal"))
			continue
		}
		command, key := strings.ToUpper(s.code[m[2]:m[3]]), strings.TrimSpace(s.code[m[4]:m[5]])
		_, named := keys[key]
		if command == "TIME" || command == "PUBLISH" || named || luaKey.MatchString(key) {
			continue
		}
		found = append(found, s.at(m[0], "%s works on %q, which is not a declared key", command, key))
	}
	for _, m := range luaJoinedKey.FindAllStringIndex(s.bare, -1) {
		found = append(found, s.at(m[0], "a key is built by .."))
	}
	for name, fromKeys := range keys {
		if !fromKeys {
			continue
		}
		joined := regexp.MustCompile(`\b` + name + `\s*\.\.|\.\.\s*` + name + `\b`)
		for _, m := range joined.FindAllStringIndex(s.bare, -1) {
			found = append(found, s.at(m[0], "a key is built from %s by ..", name))
		}
	}
	return found
}

// keyNames are the names that hold a key and nothing else: locals taken from KEYS and the variables of loops over some
// of KEYS, marked true, and parameters of functions, marked false, since the lint does not follow calls.
func (s *script) keyNames() map[string]bool {
	fromKeys := map[string]bool{}
	for _, m := range luaParameters.FindAllStringSubmatch(s.code, -1) {
		for name := range strings.SplitSeq(m[1], ",") {
			fromKeys[strings.TrimSpace(name)] = false
		}
	}
	for _, m := range luaLoop.FindAllStringSubmatch(s.code, -1) {
		fromKeys[m[1]] = true
	}
	for _, m := range luaLocal.FindAllStringSubmatch(s.code, -1) {
		values := strings.Split(m[2], ",")
		for i, name := range strings.Split(m[1], ",") {
			name = strings.TrimSpace(name)
			if i < len(values) && luaKey.MatchString(strings.Trim(values[i], " ;")) {
				fromKeys[name] = true
			} else {
				delete(fromKeys, name)
			}
		}
	}
	return fromKeys
}
