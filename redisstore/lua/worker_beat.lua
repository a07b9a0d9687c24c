-- worker_beat: note that a worker was seen now.
-- KEYS[1] workers zset  worker ID -> last seen, ms
-- KEYS[2] row     hash  the worker's row, with a time to live
-- ARGV[1] now    ms; '' = server TIME
-- ARGV[2] ID     of the worker
-- ARGV[3] life   of the row, ms
-- returns 1 noted | 0 the row is gone, or marked dead
-- keeps   a dead row as it is. Half a row is removed: no beat makes it whole
-- cost    O(log n)
local now = clock(ARGV[1])
local seen = redis.call('ZSCORE', KEYS[1], ARGV[2])
local row = redis.call('HMGET', KEYS[2], 'record', 'state')
if not (seen and row[1] and row[2]) then
  redis.call('ZREM', KEYS[1], ARGV[2])
  redis.call('DEL', KEYS[2])
  return 0
end
if row[2] == 'dead' then
  return 0
end
redis.call('ZREM', KEYS[1], '') -- a removal first: memory pressure never refuses it, and then not what follows
redis.call('ZADD', KEYS[1], now, ARGV[2])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
return 1
