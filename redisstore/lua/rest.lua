-- rest: replace notes of when queues have something to do.
-- KEYS[1] index  zset  queue -> ms
-- ARGV[1] now    ms; '' = server TIME
-- ARGV[2..] repeated: ms from now or -1 to remove the note, queue
-- returns 1
-- keeps   the notes of other queues
-- cost    O(queues * log n)
local now = clock(ARGV[1])
local gone = {}
redis.call('ZREM', KEYS[1], '') -- a removal first: memory pressure never refuses it, and then not what follows
for i = 2, #ARGV, 2 do
  if tonumber(ARGV[i]) >= 0 then
    redis.call('ZADD', KEYS[1], now + tonumber(ARGV[i]), ARGV[i + 1])
  else
    gone[#gone + 1] = ARGV[i + 1]
  end
end
if #gone > 0 then
  redis.call('ZREM', KEYS[1], unpack(gone))
end
return 1
