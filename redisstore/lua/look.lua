-- look: say when a queue has something to do.
-- KEYS[1] due    zset  score = due ms
-- KEYS[2] leased zset  score = lease end ms
-- KEYS[3] meta   hash  settings and counters of the queue
-- ARGV[1] now    ms; '' = server TIME
-- returns ms until a task is due or a lease ends, 0 = now, -1 = nothing. A paused queue has no due tasks.
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
return first
