-- queue_create: create a queue unless it exists.
-- KEYS[1] meta   hash  settings and counters of the queue
-- ARGV[1] now    ms; '' = server TIME
-- ARGV[2] config settings
-- ARGV[3] interval us between two attempts; 0 = unlimited
-- ARGV[4] burst  attempts
-- ARGV[5] concurrent attempts; 0 = unlimited
-- ARGV[6] requires of each task
-- ARGV[7] ttl    ms after which a task is dropped; 0 = never
-- returns 1 created | 0 exists
-- keeps   a queue that exists as it is
-- cost    O(1)
local now = clock(ARGV[1])
if redis.call('HEXISTS', KEYS[1], 'generation') == 1 then
  return 0
end
redis.call('HSET', KEYS[1], 'generation', 1, 'version', now, 'config', ARGV[2], 'created', now,
  'interval', ARGV[3], 'burst', ARGV[4], 'concurrent', ARGV[5], 'requires', ARGV[6], 'ttl', ARGV[7])
return 1
