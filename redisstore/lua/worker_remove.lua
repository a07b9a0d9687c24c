-- worker_remove: remove the row of a worker, and its leadership.
-- KEYS[1] workers zset  worker ID -> last seen, ms
-- KEYS[2] row     hash  the worker's row
-- KEYS[3] leader  string  ID of the worker that leads, with a time to live
-- ARGV[1] ID     of the worker
-- ARGV[2] channel
-- ARGV[3] message when the row is gone
-- ARGV[4] message when the leadership is free
-- returns 1
-- keeps   the rows of other workers, and their leadership
-- cost    O(log n)
if redis.call('ZREM', KEYS[1], ARGV[1]) + redis.call('DEL', KEYS[2]) > 0 then
  redis.call('PUBLISH', ARGV[2], ARGV[3])
end
if redis.call('GET', KEYS[3]) == ARGV[1] then
  redis.call('DEL', KEYS[3])
  redis.call('PUBLISH', ARGV[2], ARGV[4])
end
return 1
