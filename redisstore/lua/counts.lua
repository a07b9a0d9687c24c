-- counts: count the tasks of one queue.
-- KEYS[1] due    zset  score = due ms
-- KEYS[2] leased zset  score = lease end ms
-- KEYS[3] done   zset  succeeded and retained, score = expiry ms
-- KEYS[4] dead   zset  dead and retained, score = expiry ms
-- KEYS[5] cancelled zset and retained, score = expiry ms
-- KEYS[6] meta   hash  settings and counters of the queue
-- ARGV[1] now    ms; '' = server TIME
-- returns {1, ready, scheduled, leased, done, dead, cancelled, and since the queue was created: succeeded, died, retried,
--          cancelled, expired; us between two starts now, 0 = no rate} | {0} no queue
-- keeps   everything: it only reads
-- cost    O(log n)
local now = clock(ARGV[1])
local meta = redis.call('HMGET', KEYS[6], 'generation', 'ok', 'dead', 'retry', 'cancelled', 'expired', 'interval', 'slow_interval', 'congested_at')
if not meta[1] then
  return {0}
end
local out = {1, redis.call('ZCOUNT', KEYS[1], '-inf', now)}
out[3] = redis.call('ZCARD', KEYS[1]) - out[2]
for i, zset in ipairs({KEYS[2], KEYS[3], KEYS[4], KEYS[5]}) do
  out[i + 3] = redis.call('ZCARD', zset)
end
for i = 2, 6 do
  out[i + 6] = tonumber(meta[i]) or 0
end
out[13] = effective((tonumber(meta[7]) or 0), 0, tonumber(meta[8]), tonumber(meta[9]), now)
return out
