-- worker_sweep: remove the rows of those workers that were not seen for too long, and the leadership of one of them.
-- KEYS[1] workers zset  worker ID -> last seen, ms
-- KEYS[2] leader  string  ID of the worker that leads, with a time to live
-- KEYS[3..] row   hash  one per ID
-- ARGV[1] now    ms; '' = server TIME
-- ARGV[2] threshold ms
-- ARGV[3] channel
-- ARGV[4] message when rows are gone
-- ARGV[5] message when the leadership is free
-- ARGV[6..] IDs
-- returns how many rows it has removed
-- keeps   rows of workers seen since, and their leadership
-- cost    O(IDs * log n)
local now = clock(ARGV[1])
local leader = redis.call('GET', KEYS[2])
local removed, gone = 0, {}
for i = 6, #ARGV do
  local seen = redis.call('ZSCORE', KEYS[1], ARGV[i])
  if seen and tonumber(seen) < now - tonumber(ARGV[2]) then
    gone[#gone + 1] = ARGV[i]
    removed = removed + redis.call('DEL', KEYS[i - 3])
    if leader == ARGV[i] then
      redis.call('DEL', KEYS[2])
      redis.call('PUBLISH', ARGV[3], ARGV[5])
    end
  end
end
if #gone > 0 then
  redis.call('ZREM', KEYS[1], unpack(gone))
end
if removed > 0 then
  redis.call('PUBLISH', ARGV[3], ARGV[4])
end
return removed
