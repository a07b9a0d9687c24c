-- cron_delete: remove a cron entry, if nobody has changed it since it was read.
-- KEYS[1] cron   hash  name -> entry
-- KEYS[2] next   zset  name -> ms when the leader has to look at the entry; 0 = not planned yet
-- ARGV[1] name
-- ARGV[2] revision that was read; '0' = whatever it is
-- ARGV[3] channel
-- ARGV[4] message
-- returns 1 removed | 0 no such entry, or another revision
-- keeps   an entry is in next unless it is paused or has no tick ever
-- cost    O(log n)
local value = redis.call('HGET', KEYS[1], ARGV[1])
local found = entry(value)
if not value or ARGV[2] ~= '0' and not (found and found.revision == ARGV[2]) then
  return 0
end
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('PUBLISH', ARGV[3], ARGV[4])
return 1
