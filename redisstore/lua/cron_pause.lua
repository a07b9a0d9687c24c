-- cron_pause: pause or resume a cron entry. What was missed while it was paused is not made up for.
-- KEYS[1] cron   hash  name -> entry
-- KEYS[2] next   zset  name -> ms when the leader has to look at the entry; 0 = not planned yet
-- KEYS[3] last   string the highest revision ever given
-- ARGV[1] now    ms; '' = server TIME
-- ARGV[2] name
-- ARGV[3] paused '1' | '0'
-- ARGV[4] channel
-- ARGV[5] message
-- returns 1 it is so now | 0 no such entry
-- keeps   an entry is in next unless it is paused or has no tick ever
-- cost    O(log n)
local now = clock(ARGV[1])
local found, content = entry(redis.call('HGET', KEYS[1], ARGV[2]))
if not found then
  return 0
end
if found.paused == ARGV[3] then
  return 1
end
local revision = following(redis.call('GET', KEYS[3]), found, now)
local since = found.since
if ARGV[3] == '0' then
  since = string.format('%d', now)
end
redis.call('ZREM', KEYS[2], '') -- a removal first: memory pressure never refuses it, and then not what follows
redis.call('HSET', KEYS[1], ARGV[2], stored(revision, ARGV[3], since, '0', content))
redis.call('SET', KEYS[3], revision)
if ARGV[3] == '0' then
  redis.call('ZADD', KEYS[2], 0, ARGV[2])
else
  redis.call('ZREM', KEYS[2], ARGV[2])
end
redis.call('PUBLISH', ARGV[4], ARGV[5])
return 1
