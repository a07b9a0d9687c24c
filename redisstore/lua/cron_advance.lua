-- cron_advance: note up to when the ticks of a cron entry are dealt with.
-- KEYS[1] cron   hash  name -> entry
-- KEYS[2] next   zset  name -> ms when the leader has to look at the entry; 0 = not planned yet
-- KEYS[3] term   string the highest term of a leader; a higher one that comes is stored
-- ARGV[1] name
-- ARGV[2] revision that was read
-- ARGV[3] since  ms up to which ticks are dealt with
-- ARGV[4] next   ms of the next tick; '0' = there is none ever
-- ARGV[5] term   of the leader that calls; '0' = not checked
-- returns 1 noted | 0 gone, paused, changed, or advanced as far before | -1 another leader has followed
-- keeps   an entry is in next unless it is paused or has no tick ever
-- cost    O(log n)
local highest = tonumber(redis.call('GET', KEYS[3]) or 0) or 0
if ARGV[5] ~= '0' and tonumber(ARGV[5]) < highest then
  return -1
end
local found, content = entry(redis.call('HGET', KEYS[1], ARGV[1]))
if not found or found.paused == '1' or found.revision ~= ARGV[2] then
  return 0
end
-- Since may stay where it is once, to plan an entry that has no tick yet.
local since, before = tonumber(ARGV[3]), tonumber(found.since)
local unplanned = tonumber(redis.call('ZSCORE', KEYS[2], ARGV[1]) or -1) == 0
if since < before or since == before and not unplanned then
  return 0
end
redis.call('ZREM', KEYS[2], '') -- a removal first: memory pressure never refuses it, and then not what follows
redis.call('HSET', KEYS[1], ARGV[1], stored(found.revision, '0', ARGV[3], ARGV[4], content))
if tonumber(ARGV[5]) > highest then
  redis.call('SET', KEYS[3], ARGV[5]) -- the server has lost it
end
if ARGV[4] ~= '0' then
  redis.call('ZADD', KEYS[2], ARGV[4], ARGV[1])
else
  redis.call('ZREM', KEYS[2], ARGV[1])
end
return 1
