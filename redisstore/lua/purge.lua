-- purge: begin a purge of one queue: from now on, tasks stored before are dropped wherever they turn up.
-- KEYS[1] due    zset  score = due ms
-- KEYS[2] meta   hash  settings and counters of the queue
-- ARGV[1] request that the caller never repeats for another purge
-- ARGV[2] tombstone ms, for named tasks; 0 = none
-- returns 1 begun, now or by an earlier run of this request | 0 no such queue
-- keeps   everything but the generation: slices remove the tasks
-- cost    O(1)
local meta = redis.call('HMGET', KEYS[2], 'generation', 'purge')
if not meta[1] then
  return 0
end
if meta[2] ~= ARGV[1] then
  redis.call('ZREM', KEYS[1], '') -- a removal first: memory pressure never refuses it, and then not what follows
  redis.call('HSET', KEYS[2], 'generation', tonumber(meta[1]) + 1, 'purge', ARGV[1], 'tombstone', ARGV[2])
end
return 1
