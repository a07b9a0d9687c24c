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
local left = tonumber(ARGV[2])
for _, zset in ipairs({KEYS[3], KEYS[4], KEYS[5], KEYS[6]}) do
  local over = redis.call('ZRANGEBYSCORE', zset, '-inf', now, 'LIMIT', 0, left)
  if #over > 0 then
    left = left - #over
    redis.call('ZREM', zset, unpack(over))
    if zset ~= KEYS[6] then
      redis.call('HDEL', KEYS[1], unpack(over))
      redis.call('HDEL', KEYS[2], unpack(over))
    end
  end
end
local following = -1
for _, zset in ipairs({KEYS[3], KEYS[4], KEYS[5], KEYS[6]}) do
  local wait = untilFirst(zset, now)
  if wait >= 0 and (following < 0 or wait < following) then
    following = wait
  end
end
return following
