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
if redis.call('HGET', KEYS[3], 'paused') ~= '1' then
  local due = untilFirst(KEYS[1], now)
  if due >= 0 and (first < 0 or due < first) then
    first = due
  end
end
return first
