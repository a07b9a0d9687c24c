-- look: say when a queue has something to do, and whether its keys contradict each other.
-- KEYS[1] due    zset  score = due ms
-- KEYS[2] leased zset  score = lease end ms
-- KEYS[3] meta   hash  settings and counters of the queue
-- KEYS[4] leases hash  task ID -> lease
-- KEYS[5] tasks  hash  task ID -> record
-- KEYS[6] done   zset  succeeded and retained, score = expiry ms
-- KEYS[7] dead   zset  dead and retained, score = expiry ms
-- KEYS[8] cancelled zset and retained, score = expiry ms
-- ARGV[1] now    ms; '' = server TIME
-- returns {ms until a task is due or a lease ends, 0 = now, -1 = nothing; 1 if there are not as many entries as records, or
--          leases as ends, which no script leaves behind, or 0}. A paused queue has no due tasks.
-- keeps   everything: it only reads
-- cost    O(log n)
local now = clock(ARGV[1])
local first = untilFirst(KEYS[2], now)
local due = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]
if due and (tonumber(due) < 0 or redis.call('HGET', KEYS[3], 'paused') ~= '1') then
  due = math.max(tonumber(due) - now, 0)
  if first < 0 or due < first then
    first = due
  end
end
local leased, entries = redis.call('ZCARD', KEYS[2]), 0
for _, zset in ipairs({KEYS[1], KEYS[6], KEYS[7], KEYS[8]}) do
  entries = entries + redis.call('ZCARD', zset)
end
local whole = leased == redis.call('HLEN', KEYS[4]) and leased + entries == redis.call('HLEN', KEYS[5])
return {first, whole and 0 or 1}
