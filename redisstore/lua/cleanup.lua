-- cleanup: remove retained tasks and tombstones of one queue whose time is over.
-- KEYS[1] tasks  hash  task ID -> record
-- KEYS[2] state  hash  task ID -> progress
-- KEYS[3] done   zset  succeeded and retained, score = expiry ms
-- KEYS[4] dead   zset  dead and retained, score = expiry ms
-- KEYS[5] cancelled zset and retained, score = expiry ms
-- KEYS[6] names  zset  tombstones of named tasks, score = expiry ms
-- ARGV[1] now    ms; '' = server TIME
-- ARGV[2] limit  of removals; 0 = only look
-- returns ms until the next expiry: 0 = more are over, -1 = nothing is left
-- keeps   every ID of tasks is in exactly one of due, leased, done, dead, cancelled
-- cost    O(limit * log n)
local now = clock(ARGV[1])
local left, gone, following = tonumber(ARGV[2]), {}, -1
for _, zset in ipairs({KEYS[3], KEYS[4], KEYS[5], KEYS[6]}) do
  local over = redis.call('ZRANGEBYSCORE', zset, '-inf', now, 'LIMIT', 0, left)
  local rest = redis.call('ZCARD', zset) > #over and zset
  if #over > 0 then
    left = left - #over
    redis.call('ZREM', zset, unpack(over))
    for i = 1, zset ~= KEYS[6] and #over or 0 do
      gone[#gone + 1] = over[i]
    end
  end
  local wait = untilFirst(rest, now)
  if wait >= 0 and (following < 0 or wait < following) then
    following = wait
  end
end
if #gone > 0 then
  redis.call('HDEL', KEYS[1], unpack(gone))
  redis.call('HDEL', KEYS[2], unpack(gone))
end
return following
