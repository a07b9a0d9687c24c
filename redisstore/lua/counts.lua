-- counts: count the tasks of one queue.
-- KEYS[1] due    zset  score = due ms
-- KEYS[2] leased zset  score = lease end ms
-- KEYS[3] done   zset  succeeded and retained, score = expiry ms
-- KEYS[4] dead   zset  dead and retained, score = expiry ms
-- KEYS[5] meta   hash  settings and counters of the queue
-- ARGV[1] now    ms; '' = server TIME
-- returns {1, ready, scheduled, leased, done, dead, succeeded, died, retried since the queue was created} | {0} no queue
-- keeps   everything: it only reads
-- cost    O(log n)
local now = clock(ARGV[1])
local meta = redis.call('HMGET', KEYS[5], 'generation', 'ok', 'dead', 'retry')
if not meta[1] then
  return {0}
end
local ready = redis.call('ZCOUNT', KEYS[1], '-inf', now)
return {1, ready, redis.call('ZCARD', KEYS[1]) - ready, redis.call('ZCARD', KEYS[2]), redis.call('ZCARD', KEYS[3]),
  redis.call('ZCARD', KEYS[4]), (tonumber(meta[2]) or 0), (tonumber(meta[3]) or 0), (tonumber(meta[4]) or 0)}
