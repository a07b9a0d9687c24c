-- queue_state: pause, drain or resume a queue. One that drains takes no new tasks.
-- KEYS[1] meta   hash  settings and counters of the queue
-- ARGV[1] field  to set: paused, draining; '' = resume
-- returns 1 done | 0 no such queue
-- keeps   everything else; attempts that run go on
-- cost    O(1)
if redis.call('HEXISTS', KEYS[1], 'generation') == 0 then
  return 0
end
-- A removal first: memory pressure never refuses it, and then not what follows. No field means running.
if ARGV[1] == '' then
  redis.call('HDEL', KEYS[1], 'paused', 'draining')
else
  redis.call('HDEL', KEYS[1], ARGV[1])
  redis.call('HSET', KEYS[1], ARGV[1], 1)
end
return 1
