-- cancel: end a task that waits or runs as cancelled. An attempt that runs loses its lease.
-- KEYS[1] due    zset  score = due ms
-- KEYS[2] leased zset  score = lease end ms
-- KEYS[3] leases hash  task ID -> lease
-- KEYS[4] tasks  hash  task ID -> record
-- KEYS[5] state  hash  task ID -> progress
-- KEYS[6] names  zset  tombstones of named tasks, score = expiry ms
-- KEYS[7] cancelled zset and retained, score = expiry ms
-- KEYS[8] meta   hash  settings and counters of the queue
-- KEYS[9] memo   string the caller's last call of its lane: number, answer; see enqueue
-- ARGV[1] now    ms; '' = server TIME
-- ARGV[2] ID     of the task
-- ARGV[3] lease  that the caller has read; '' = none, the task waits
-- ARGV[4] retention ms; 0 = it is gone
-- ARGV[5] tombstone ms, for a named task; 0 = none
-- ARGV[6] progress with the attempt that ends, if one does; '' = as it is
-- ARGV[7] channel of tasks that have ended   ARGV[8] queue
-- ARGV[9] number of this call, rising per memo
-- returns {1, ms until the next expiry of what this call keeps or -1} | {0} no such task | {-1} its lease is another by now
--         | {-2} it has ended before | {-3} it was cancelled before | {-4} a call with a higher number has run
-- keeps   every ID of tasks is in exactly one of due, leased, done, dead, cancelled; leased and leases hold the same IDs
-- cost    O(log n)
local now = clock(ARGV[1])
local id, retention = ARGV[2], tonumber(ARGV[4])
local last = string.match(redis.call('GET', KEYS[9]) or '', '^%d+')
if last == ARGV[9] then
  local kept, name = untilFirst(KEYS[7], now), untilFirst(KEYS[6], now)
  return {1, kept < 0 and name or name < 0 and kept or math.min(kept, name)}
elseif last and tonumber(last) > tonumber(ARGV[9]) then
  return {-4}
end
local record, meta = redis.call('HGET', KEYS[4], id), redis.call('HMGET', KEYS[8], 'generation', 'awaited')
local lease, due = redis.call('HGET', KEYS[3], id), redis.call('ZSCORE', KEYS[1], id)
if not record or due and fate(record, tonumber(meta[1] or 0), 0, now) then
  return {0} -- or a purge has taken it
elseif redis.call('ZSCORE', KEYS[7], id) then
  return {-3}
elseif not lease and not due then
  return {-2}
elseif (lease or '') ~= ARGV[3] then
  return {-1}
end
redis.call('ZREM', KEYS[1], id)
redis.call('ZREM', KEYS[2], id)
redis.call('HDEL', KEYS[3], id)
local kept, expiry = tombstone(record, tonumber(ARGV[5])), -1
if retention > 0 then
  expiry = retention
  redis.call('ZADD', KEYS[7], string.format('%d', now + retention), id)
  if ARGV[6] ~= '' then
    redis.call('HSET', KEYS[5], id, ARGV[6])
  end
else
  redis.call('HDEL', KEYS[4], id)
  redis.call('HDEL', KEYS[5], id)
end
if kept > 0 then
  expiry = expiry < 0 and kept or math.min(expiry, kept)
  redis.call('ZADD', KEYS[6], string.format('%d', now + kept), id)
end
redis.call('HINCRBY', KEYS[8], 'cancelled', 1)
redis.call('SET', KEYS[9], ARGV[9] .. ' 1', 'PX', 60000)
if (tonumber(meta[2]) or 0) > now then
  redis.pcall('PUBLISH', ARGV[7], ARGV[8] .. ' ' .. id) -- as in settle
end
return {1, expiry}
