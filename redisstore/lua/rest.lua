-- rest: replace notes of when queues have something to do.
-- KEYS[1] index  zset  queue -> ms
-- ARGV[1] now    ms; '' = server TIME
-- ARGV[2..] repeated: ms from now or -1 to remove the note, queue
-- returns 1
-- keeps   the notes of other queues
-- cost    O(queues * log n)
local now = clock(ARGV[1])
for i = 2, #ARGV, 2 do
  redis.call('ZREM', KEYS[1], ARGV[i + 1])
  if tonumber(ARGV[i]) >= 0 then
    redis.call('ZADD', KEYS[1], now + tonumber(ARGV[i]), ARGV[i + 1])
  end
end
return 1
