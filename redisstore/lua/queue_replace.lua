-- queue_replace: replace the settings of a queue, if nobody else did since they were read.
-- KEYS[1] meta   hash  settings and counters of the queue
-- KEYS[2] memo   string the caller's last call of its lane: number, answer; see enqueue
-- ARGV[1] version that was read
-- ARGV[2] config settings
-- ARGV[3] interval us between two attempts; 0 = unlimited
-- ARGV[4] burst  attempts
-- ARGV[5] concurrent attempts; 0 = unlimited
-- ARGV[6] now    ms; '' = server TIME
-- ARGV[7] requires of each task
-- ARGV[8] ttl    ms after which a task is dropped; 0 = never
-- ARGV[9] number of this call, rising per memo
-- returns 1 replaced, or stored by an earlier run of this call | 0 the version is another | -1 no such queue
-- keeps   pause, counters and tasks
-- cost    O(1)
local meta = redis.call('HMGET', KEYS[1], 'version', 'interval', 'tat')
if not meta[1] then
  return -1
end
local last = string.match(redis.call('GET', KEYS[2]) or '', '^%d+')
if last == ARGV[9] then
  return 1
end
local version = tonumber(ARGV[1])
if tonumber(meta[1]) ~= version or last and tonumber(last) > tonumber(ARGV[9]) then
  return 0
end
-- The bucket keeps the tokens that were used of it, counted at the new rate; else a change of the rate would fill it.
local _, micros = clock(ARGV[6])
local interval, tat = tonumber(meta[2]) or 0, tonumber(meta[3]) or 0
local used = interval > 0 and math.max(math.ceil((tat - micros) / interval), 0) or 0
-- A removal first: memory pressure never refuses it, and then not what follows. What receivers have said was said of
-- the old settings.
redis.call('HDEL', KEYS[1], 'slow_interval')
redis.call('HSET', KEYS[1], 'tat', micros + used * tonumber(ARGV[3]), 'version', version + 1, 'config', ARGV[2],
  'interval', ARGV[3], 'burst', ARGV[4], 'concurrent', ARGV[5], 'requires', ARGV[7],
  'ttl', ARGV[8])
redis.call('SET', KEYS[2], ARGV[9] .. ' 1', 'PX', 60000)
return 1
