-- queue_pause: pause or resume a queue.
-- KEYS[1] meta   hash  settings and counters of the queue
-- ARGV[1] paused '1', or '0' to resume
-- returns 1 done | 0 no such queue
-- keeps   everything else; attempts that run go on
-- cost    O(1)
if redis.call('HEXISTS', KEYS[1], 'generation') == 0 then
  return 0
end
-- A removal first: memory pressure never refuses it, and then not what follows. No field means running.
redis.call('HDEL', KEYS[1], 'paused')
if ARGV[1] == '1' then
  redis.call('HSET', KEYS[1], 'paused', 1)
end
return 1
