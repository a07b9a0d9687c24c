-- run_task: have a task attempted at once, whatever the pause and the limits of its queue. An attempt that runs loses its lease.
-- KEYS[1] due    zset  score = due ms; below 0 = at once, see lib_clock
-- KEYS[2] leased zset  score = lease end ms
-- KEYS[3] leases hash  task ID -> lease
-- KEYS[4] tasks  hash  task ID -> record
-- KEYS[5] meta   hash  settings and counters of the queue
-- KEYS[6] memo   string the caller's last call of its lane: number, answer; see enqueue
-- ARGV[1] now    ms; '' = server TIME
-- ARGV[2] ID     of the task
-- ARGV[3] number of this call, rising per memo
-- returns {1, token of the lease that it has lost or '0'} | {0} no such task | {-1} it has ended
--         | {-3} a call with a higher number has run
-- keeps   every ID of tasks is in exactly one of due, leased, done, dead, cancelled; leased and leases hold the same IDs
-- cost    O(log n)
local now = clock(ARGV[1])
local id = ARGV[2]
local last, answered = string.match(redis.call('GET', KEYS[6]) or '', '^(%d+) (%d+)$')
if last == ARGV[3] then
  return {1, answered}
elseif last and tonumber(last) > tonumber(ARGV[3]) then
  return {-3}
end
local record, generation = redis.call('HGET', KEYS[4], id), tonumber(redis.call('HGET', KEYS[5], 'generation') or 0)
local lease, due = redis.call('HGET', KEYS[3], id), redis.call('ZSCORE', KEYS[1], id)
if record and not lease and not due then
  return {-1}
elseif not record or fate(record, generation, 0, now) then
  return {0} -- or a purge has taken it; then an attempt that runs is the last one
end
local lost = string.match(lease or '0', '^%d+')
-- A removal first: memory pressure never refuses it, and then not what follows.
redis.call('ZREM', KEYS[1], '')
if lease then
  redis.call('ZREM', KEYS[2], id)
  redis.call('HDEL', KEYS[3], id)
end
redis.call('ZADD', KEYS[1], string.format('%d', -(FRESH + now)), id)
redis.call('SET', KEYS[6], ARGV[3] .. ' ' .. lost, 'PX', 60000)
return {1, lost}
