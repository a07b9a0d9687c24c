-- announce: note when queues have something to do, unless sooner is noted already, and tell all processes.
-- KEYS[1] index  zset  queue -> ms
-- ARGV[1] now    ms; '' = server TIME
-- ARGV[2] channel; '' = tell nobody
-- ARGV[3] message
-- ARGV[4..] repeated: ms from now, queue
-- returns 1
-- keeps   the sooner of two notes
-- cost    O(queues * log n)
local now = clock(ARGV[1])
-- The message goes first: it needs no memory, so a full store still wakes the workers that drain it.
if ARGV[2] ~= '' then
  redis.call('PUBLISH', ARGV[2], ARGV[3])
end
for i = 4, #ARGV, 2 do
  local at, noted = now + tonumber(ARGV[i]), redis.call('ZSCORE', KEYS[1], ARGV[i + 1])
  if not noted or at < tonumber(noted) then
    redis.call('ZREM', KEYS[1], '') -- a removal first: memory pressure never refuses it
    redis.call('ZADD', KEYS[1], at, ARGV[i + 1])
  end
end
return 1
