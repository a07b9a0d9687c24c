-- delete: remove one task of a queue, wherever it stands. An attempt that runs loses its lease.
-- KEYS[1] due    zset  score = due ms
-- KEYS[2] leased zset  score = lease end ms
-- KEYS[3] leases hash  task ID -> lease
-- KEYS[4] tasks  hash  task ID -> record
-- KEYS[5] state  hash  task ID -> progress
-- KEYS[6] done   zset  succeeded and retained, score = expiry ms
-- KEYS[7] dead   zset  dead and retained, score = expiry ms
-- KEYS[8] cancelled zset and retained, score = expiry ms
-- KEYS[9] names  zset  tombstones of named tasks, score = expiry ms
-- KEYS[10] meta  hash  settings and counters of the queue
-- ARGV[1] now    ms; '' = server TIME
-- ARGV[2] tombstone ms, for a named task that was live; 0 = none. It is at least an hour for a derived ID.
-- ARGV[3] ID     of the task
-- ARGV[4] channel of tasks that have ended   ARGV[5] queue
-- returns -1 no such task | 0 removed | ms of the tombstone that its name has now
-- keeps   every ID of tasks is in exactly one of due, leased, done, dead; leased and leases hold the same IDs
-- cost    O(log n)
local now = clock(ARGV[1])
local id = ARGV[3]
local record = redis.call('HGET', KEYS[4], id)
if not record then
  return -1
end
local live = redis.call('ZSCORE', KEYS[1], id) or redis.call('ZSCORE', KEYS[2], id)
redis.call('ZREM', KEYS[1], id)
redis.call('ZREM', KEYS[2], id)
redis.call('HDEL', KEYS[3], id)
redis.call('HDEL', KEYS[4], id)
redis.call('HDEL', KEYS[5], id)
redis.call('ZREM', KEYS[6], id)
redis.call('ZREM', KEYS[7], id)
redis.call('ZREM', KEYS[8], id)
local kept = live and tombstone(record, tonumber(ARGV[2])) or 0
if kept > 0 then
  redis.call('ZADD', KEYS[9], now + kept, id)
end
if (tonumber(redis.call('HGET', KEYS[10], 'awaited')) or 0) > now then
  redis.pcall('PUBLISH', ARGV[4], ARGV[5] .. ' ' .. id) -- as in settle
end
return kept
