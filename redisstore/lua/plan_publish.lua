-- plan_publish: store a plan, unless a later one or a later term is known, and tell all processes.
-- KEYS[1] term   string  the highest term
-- KEYS[2] plan   string  version byte, term, space, revision, space, record
-- ARGV[1] term
-- ARGV[2] revision
-- ARGV[3] plan
-- ARGV[4] channel
-- ARGV[5] message
-- returns 1 stored, or stored before | 0 somebody else leads by now
-- keeps   term and revision never fall
-- cost    O(1)
local term, revision = tonumber(ARGV[1]), tonumber(ARGV[2])
local highest = tonumber(redis.call('GET', KEYS[1])) or 0
local plan = redis.call('GET', KEYS[2]) or ''
local t, r = string.match(plan, '^.(%d+) (%d+) ')
t, r = tonumber(t) or 0, tonumber(r) or 0
if highest > term or t > term or t == term and r > revision then
  return 0
end
if plan == ARGV[3] then
  return 1
end
redis.call('PEXPIRE', KEYS[2], 60000) -- ends with SET. Memory pressure never refuses it, and then not what follows
redis.call('SET', KEYS[2], ARGV[3])
if highest < term then
  redis.call('SET', KEYS[1], ARGV[1])
end
redis.call('PUBLISH', ARGV[4], ARGV[5])
return 1
