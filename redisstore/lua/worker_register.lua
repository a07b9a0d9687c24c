-- worker_register: write the row of a worker, as seen now, and tell all processes if that is news.
-- KEYS[1] workers zset  worker ID -> last seen, ms
-- KEYS[2] row     hash  the worker's row, with a time to live
-- ARGV[1] now    ms; '' = server TIME
-- ARGV[2] ID     of the worker
-- ARGV[3] record
-- ARGV[4] state
-- ARGV[5] created ms; 0 = as in the row before, or now
-- ARGV[6] life   of the row, ms
-- ARGV[7] channel
-- ARGV[8] message
-- returns 1
-- keeps   the rows of other workers
-- cost    O(log n)
local now = clock(ARGV[1])
local seen = redis.call('ZSCORE', KEYS[1], ARGV[2])
local before = redis.call('HMGET', KEYS[2], 'record', 'state', 'created')
local created = ARGV[5]
if created == '0' then
  created = before[3] or string.format('%.0f', now)
end
redis.call('ZREM', KEYS[1], '') -- a removal first: a full store still takes the workers that drain it
redis.call('ZADD', KEYS[1], now, ARGV[2])
redis.call('HDEL', KEYS[2], 'reaped')
redis.call('HSET', KEYS[2], 'record', ARGV[3], 'state', ARGV[4], 'created', created)
redis.call('PEXPIRE', KEYS[2], ARGV[6])
if not seen or before[1] ~= ARGV[3] or before[2] ~= ARGV[4] then
  redis.call('PUBLISH', ARGV[7], ARGV[8])
end
return 1
