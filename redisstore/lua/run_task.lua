-- run_task: have a task attempted at once, whatever the pause and the limits of its queue. An attempt that runs loses its lease.
-- KEYS[1] due    zset  score = due ms; below 0 = at once, asked for at that ms
-- KEYS[2] leased zset  score = lease end ms
-- KEYS[3] leases hash  task ID -> lease
-- KEYS[4] tasks  hash  task ID -> record
-- KEYS[5] meta   hash  settings and counters of the queue
-- ARGV[1] now    ms; '' = server TIME
-- ARGV[2] ID     of the task
-- ARGV[3] request that the caller never repeats for another run
-- returns {1, lease that it has lost or ''} | {0} no such task | {-1} it has ended
-- keeps   every ID of tasks is in exactly one of due, leased, done, dead; leased and leases hold the same IDs
-- cost    O(log n)
local now = clock(ARGV[1])
local id = ARGV[2]
local record, meta = redis.call('HGET', KEYS[4], id), redis.call('HMGET', KEYS[5], 'generation', 'run', 'lost')
if meta[2] == ARGV[3] then
  return {1, meta[3]}
end
local stored = header(record or '')
local lease, due = redis.call('HGET', KEYS[3], id), redis.call('ZSCORE', KEYS[1], id)
if record and not lease and not due then
  return {-1}
elseif not record or stored and stored < tonumber(meta[1] or 0) then
  return {0} -- or a purge has taken it; then an attempt that runs is the last one
end
-- A removal first: memory pressure never refuses it, and then not what follows.
redis.call('ZREM', KEYS[1], id)
if lease then
  redis.call('ZREM', KEYS[2], id)
  redis.call('HDEL', KEYS[3], id)
end
redis.call('ZADD', KEYS[1], string.format('%d', -now), id)
redis.call('HSET', KEYS[5], 'run', ARGV[3], 'lost', lease or '')
return {1, lease or ''}
