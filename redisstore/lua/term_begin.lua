-- term_begin: begin the term of a leader. It is higher than all before, and follows the clock, so that terms rise even
-- when a failover has lost the last one.
-- KEYS[1] leader string  ID of the worker that leads, with a time to live
-- KEYS[2] term   string  the highest term
-- ARGV[1] now    ms; '' = server TIME
-- ARGV[2] ID     of the worker
-- returns the term | -1 another worker leads
-- keeps   the leadership
-- cost    O(1)
local now = clock(ARGV[1])
local leader = redis.call('GET', KEYS[1])
if leader and leader ~= ARGV[2] then
  return -1
end
local term = math.max((tonumber(redis.call('GET', KEYS[2])) or 0) + 1, now)
redis.call('PEXPIRE', KEYS[2], 60000) -- ends with SET. Memory pressure never refuses it, and then not what follows
redis.call('SET', KEYS[2], string.format('%.0f', term))
return term
