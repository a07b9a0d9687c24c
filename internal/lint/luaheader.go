package lint

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	luaTitle     = regexp.MustCompile(`^-- ([\w-]+): \S`)
	luaDescribed = regexp.MustCompile(`(KEYS|ARGV)\[(\d+)(\.\.)?\]\s+\S`)
	luaUsed      = regexp.MustCompile(`\b(KEYS|ARGV)\b(?:\[(\d+)\])?`)
)

// luaHeader checks the shape of the comment that opens a script:
//
//	-- claim: lease up to `budget` due tasks of one queue.
//	-- KEYS[1] due    zset  task ID -> due time, ms
//	-- ARGV[1] now    ms, '' = server TIME       ARGV[2] budget 1..1000
//	-- ARGV[3..] repeated: task ID, token
//	-- returns {1, id, payload, …} | {0, next due ms or ''}
//	-- keeps   every ID is in exactly one of due, leased, done, dead
//	-- cost    O(budget log n)
func luaHeader(s *script) []finding {
	var found []finding
	if strings.Contains(s.text, "#!lua") {
		// The strict harness puts it there; miniredis cannot parse it.
		found = append(found, s.at(strings.Index(s.text, "#!lua"), "a #!lua line does not run on miniredis"))
	}
	if len(s.header) == 0 {
		return append(found, s.at(0, "has no header comment on its first line"))
	}
	if title := luaTitle.FindStringSubmatch(s.header[0]); title == nil || title[1] != s.name() {
		found = append(found, s.at(0, "first line is not \"-- %s: <intent>\"", s.name()))
	}
	for _, part := range []string{"returns", "keeps", "cost"} {
		if !slices.ContainsFunc(s.header, func(line string) bool { return strings.HasPrefix(line, "-- "+part+" ") }) {
			found = append(found, s.at(0, "header has no line \"-- %s …\"", part))
		}
	}
	return found
}

// argument is KEYS[n], ARGV[n], or with open set everything from n on.
type argument struct {
	array string
	n     int
	open  bool
}

func (a argument) String() string {
	if a.open {
		return a.array + "[" + strconv.Itoa(a.n) + "..]"
	}
	return a.array + "[" + strconv.Itoa(a.n) + "]"
}

// luaArguments checks that the header describes exactly the arguments that the code uses. An index that is not a number,
// and the array as a whole (#ARGV, unpack), need a description that is open at the end.
func luaArguments(s *script) []finding {
	var found []finding
	described := s.described()
	used := map[argument]bool{}
	loose := map[string]bool{} // arrays that the code walks
	for _, m := range luaUsed.FindAllStringSubmatchIndex(s.bare, -1) {
		array := s.bare[m[2]:m[3]]
		if m[4] < 0 {
			if !loose[array] && !slices.ContainsFunc(described, func(d argument) bool { return d.array == array && d.open }) {
				found = append(found, s.at(m[0], "code walks %s, and the header has no %s[n..]", array, array))
			}
			loose[array] = true
			continue
		}
		n, _ := strconv.Atoi(s.bare[m[4]:m[5]])
		a := argument{array: array, n: n}
		if !used[a] && !slices.ContainsFunc(described, a.coveredBy) {
			found = append(found, s.at(m[0], "%s is not described in the header", a))
		}
		used[a] = true
	}
	for _, d := range described {
		isUsed := used[d] || d.open && loose[d.array]
		for a := range used {
			isUsed = isUsed || a.coveredBy(d)
		}
		if !isUsed {
			found = append(found, s.at(-1, "%s is described in the header and not used", d))
		}
	}
	return found
}

// described are the arguments that the header tells of, in lines that start with one; several may share a line.
func (s *script) described() []argument {
	var args []argument
	for _, line := range s.header {
		if !strings.HasPrefix(line, "-- KEYS[") && !strings.HasPrefix(line, "-- ARGV[") {
			continue
		}
		for _, m := range luaDescribed.FindAllStringSubmatch(line, -1) {
			n, _ := strconv.Atoi(m[2])
			args = append(args, argument{array: m[1], n: n, open: m[3] != ""})
		}
	}
	return args
}

// coveredBy says whether the description d includes a.
func (a argument) coveredBy(d argument) bool {
	return a.array == d.array && (a.n == d.n || d.open && a.n >= d.n)
}
