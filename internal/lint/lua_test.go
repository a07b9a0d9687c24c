package lint

import (
	"strings"
	"testing"
)

// goodScript breaks no rule. The cases below change one thing in it, or add a line.
const goodScript = `-- claim: lease due tasks of one queue.
-- KEYS[1] due zset  task ID -> due time, ms   KEYS[2] tasks hash
-- ARGV[1] now ms, '' = server TIME     ARGV[2] budget
-- ARGV[3..] repeated: task ID
-- returns {1, id, ...} | {0, wait}
-- keeps   every ID is in one place; "KEYS[9]" here describes nothing
-- cost    O(budget log n)

local due, tasks = KEYS[1], KEYS[2]
local now = tonumber(ARGV[1])
if not now then
  local t = redis.call('TIME')
  now = t[1] * 1000 + math.floor(t[2] / 1000)
end
local function drop(key, id)
  return redis.call('ZREM', key, id) -- tostring( / cjson. in a comment is no code
end
local id = 'ID ' .. ARGV[3] .. ' a/b cjson.x'
for i = 3, #ARGV do drop(due, ARGV[i]) end
redis.call('PUBLISH', ARGV[3], string.format('%.0f', now))
return {redis.call('HGET', tasks, id), redis.call('ZCARD', KEYS[1]), ARGV[2]}
`

func TestLua(t *testing.T) {
	script := func(text string) files { return files{luaDir + "/claim.lua": text} }
	change := func(old, new string) files {
		if !strings.Contains(goodScript, old) {
			t.Fatalf("%q is not in the script", old)
		}
		return script(strings.Replace(goodScript, old, new, 1))
	}
	add := func(line string) files { return script(goodScript + line + "\n") }
	runPlanted(t, lua, []planted{
		{"good", script(goodScript), nil},
		{"elsewhere", files{"docs/x.lua": "return 1"}, nil},

		{"empty", script(""), []string{"no header"}},
		{"shebang", script("#!lua\n" + goodScript), []string{"claim.lua:1: a #!lua line", "no header", "KEYS[1] is not", "KEYS[2] is not", "ARGV[1] is not",
			"ARGV[3] is not", "code walks ARGV", "ARGV[2] is not"}},
		{"wrong name", change("-- claim:", "-- claims:"), []string{`first line is not "-- claim:`}},
		{"no intent", change("-- claim: lease due tasks of one queue.", "-- claim:"), []string{"first line"}},
		{"no returns", change("-- returns", "-- gives"), []string{`no line "-- returns`}},
		{"no keeps", change("-- keeps", "-- holds"), []string{`no line "-- keeps`}},
		{"no cost", change("-- cost", "-- price"), []string{`no line "-- cost`}},

		{"key not described", add("redis.call('DEL', KEYS[3])"), []string{"claim.lua:22: KEYS[3] is not described"}},
		{"argument not described", change("ARGV[2] budget", ""), []string{"ARGV[2] is not described"}},
		{"described without words", change("ARGV[2] budget", "ARGV[2]"), []string{"ARGV[2] is not described"}},
		{"described and not used", change("KEYS[2] tasks hash", "KEYS[2] tasks hash KEYS[3] x"), []string{"KEYS[3] is described in the header and not used"}},
		{"walked, not open", change("ARGV[3..] repeated", "ARGV[3] once"), []string{"code walks ARGV"}},
		{"open, not used", change("KEYS[2] tasks hash", "KEYS[2] tasks hash KEYS[3..] more"), []string{"KEYS[3..] is described"}},

		{"cjson", add("cjson.encode({})"), []string{`"cjson.": records are opaque`}},
		{"bit", add("local x = bit.band(1, 2)"), []string{"records are opaque"}},
		{"replicate", add("redis.replicate_commands()"), []string{"replication"}},
		{"KEYS command", add("redis.call('keys', KEYS[1])"), []string{"KEYS walks"}},
		{"tostring", add("local s = tostring(now)"), []string{"14 digits"}},
		{"number joined", add("local s = 'x' .. now"), []string{"14 digits"}},
		{"number joined before", add("local s = wait_ms .. 'x'"), []string{"14 digits"}},
		{"division", add("local x = now / 2"), []string{"claim.lua:22: division without math.floor"}},
		{"TIME twice", add("redis.call('TIME')"), []string{"claim.lua:22: TIME is read more than once"}},

		{"key from an argument", add("redis.call('DEL', ARGV[3])"), []string{`DEL works on "ARGV[3]"`}},
		{"key from a local", add("redis.call('DEL', id)"), []string{`DEL works on "id"`}},
		{"key built in place", add("redis.call('DEL', KEYS[1] .. 'x')"), []string{"DEL works on", "a key is built by .."}},
		{"key built from a local", add("local k = due .. ':x'"), []string{"a key is built from due"}},
		{"loop over keys", add("for _, z in ipairs({KEYS[1], KEYS[2]}) do redis.call('DEL', z) end"), nil},
		{"loop over more than keys", add("for _, z in ipairs({KEYS[1], ARGV[2]}) do redis.call('DEL', z) end"), []string{`DEL works on "z"`}},
		{"command in a variable", add("redis.call(cmd, KEYS[1])"), []string{"not a literal"}},
		{"call under another name", add("local call = redis.call\ncall('DEL', id)"), []string{"with parentheses and under its own name"}},
		{"call without parentheses", add("redis.call 'FLUSHALL'\nreturn 1"), []string{"with parentheses and under its own name"}},
	})
}

func TestBlankKeepsPlaces(t *testing.T) {
	const text = "a --[[ x\ny ]] b 'it\\'s' --c\n[==[ ]] ]==] d \"--\" e"
	const wantCode = "a       \n     b 'it\\'s'    \n[==[ ]] ]==] d \"--\" e"
	const wantBare = "a       \n     b            \n             d      e"
	code, bare := blank(text)
	if code != wantCode {
		t.Errorf("code\n%q, want\n%q", code, wantCode)
	}
	if bare != wantBare {
		t.Errorf("bare\n%q, want\n%q", bare, wantBare)
	}
}
