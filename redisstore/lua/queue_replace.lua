-- queue_replace: replace the settings of a queue, if nobody else did since they were read.
-- KEYS[1] meta   hash  settings and counters of the queue
-- ARGV[1] version that was read
-- ARGV[2] config settings
-- ARGV[3] interval us between two attempts; 0 = unlimited
-- ARGV[4] burst  attempts
-- ARGV[5] concurrent attempts; 0 = unlimited
-- ARGV[6] now    ms; '' = server TIME
-- ARGV[7] requires of each task
-- ARGV[8] ttl    ms after which a task is dropped; 0 = never
-- ARGV[9] request that the caller never repeats for another change
-- returns 1 replaced, or stored by an earlier run of this call | 0 the version is another | -1 no such queue
-- keeps   pause, counters and tasks
-- cost    O(1)
local meta = redis.call('HMGET', KEYS[1], 'version', 'change', 'interval', 'tat')
if not meta[1] then
  return -1
end
local version = tonumber(ARGV[1])
if tonumber(meta[1]) == version + 1 and meta[2] == ARGV[9] then
  return 1
end
if tonumber(meta[1]) ~= version then
  return 0
end
-- The bucket keeps the tokens that were used of it, counted at the new rate; else a change of the rate would fill it.
local _, micros = clock(ARGV[6])
local interval, tat = tonumber(meta[3]) or 0, tonumber(meta[4]) or 0
local used = interval > 0 and math.max(math.ceil((tat - micros) / interval), 0) or 0
-- A removal first: memory pressure never refuses it, and then not what follows. What receivers have said was said of
-- the old settings.
redis.call('HDEL', KEYS[1], 'slow_interval')
redis.call('HSET', KEYS[1], 'tat', micros + used * tonumber(ARGV[3]), 'version', version + 1, 'config', ARGV[2],
  'interval', ARGV[3], 'burst', ARGV[4], 'concurrent', ARGV[5], 'requires', ARGV[7],
  'ttl', ARGV[8], 'change', ARGV[9])
return 1
