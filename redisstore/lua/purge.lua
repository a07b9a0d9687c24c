-- purge: begin a purge of one queue: from now on, tasks stored before are dropped wherever they turn up.
-- KEYS[1] due    zset  score = due ms
-- KEYS[2] meta   hash  settings and counters of the queue
-- KEYS[3] memo   string the caller's last call of its lane: number, answer; see enqueue
-- ARGV[1] number of this call, rising per memo
-- ARGV[2] tombstone ms, for named tasks; 0 = none
-- returns 1 begun, now or by an earlier run of this call | 0 no such queue | -1 a call with a higher number has run
-- keeps   everything but the generation: slices remove the tasks
-- cost    O(1)
local last = string.match(redis.call('GET', KEYS[3]) or '', '^%d+')
if last and tonumber(last) >= tonumber(ARGV[1]) then
  return last == ARGV[1] and 1 or -1
end
local generation = redis.call('HGET', KEYS[2], 'generation')
if not generation then
  return 0
end
redis.call('ZREM', KEYS[1], '') -- a removal first: memory pressure never refuses it, and then not what follows
redis.call('HSET', KEYS[2], 'generation', tonumber(generation) + 1, 'tombstone', ARGV[2])
redis.call('SET', KEYS[3], ARGV[1] .. ' 1', 'PX', 60000)
return 1
