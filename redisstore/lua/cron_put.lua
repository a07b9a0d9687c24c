-- cron_put: store a cron entry, unless it is stored just so.
-- KEYS[1] cron   hash  name -> entry
-- KEYS[2] next   zset  name -> ms when the leader has to look at the entry; 0 = not planned yet
-- KEYS[3] last   string the highest revision ever given
-- ARGV[1] now    ms; '' = server TIME
-- ARGV[2] name
-- ARGV[3] content: owner, ticks and body of the entry; one without owner leaves it to the owner that it has
-- ARGV[4] channel
-- ARGV[5] message
-- returns 1 stored | 0 it was stored just so
-- keeps   an entry is in next unless it is paused or has no tick ever
-- cost    O(log n)
local now = clock(ARGV[1])
local before, content = entry(redis.call('HGET', KEYS[1], ARGV[2]))
local wanted = ARGV[3]
local owner, ticks = string.match(content or '', '^(%S*) (%S*)\n')
if owner and string.byte(wanted) == 32 then
  wanted = owner .. wanted
end
if content == wanted then
  return 0
end
local paused = before and before.paused or '0'
local revision = following(redis.call('GET', KEYS[3]), before, now)
local since = string.format('%d', now)
if before and paused == '0' and string.match(wanted, '^%S* (%S*)\n') == ticks then
  since = before.since -- ticks that are due and not fired yet are not lost with a change of the task
end
-- The first write is one that memory pressure refuses, so a full store takes nothing.
redis.call('HSET', KEYS[1], ARGV[2], stored(revision, paused, since, '0', wanted))
redis.call('SET', KEYS[3], revision)
if paused == '0' then
  redis.call('ZADD', KEYS[2], 0, ARGV[2])
end
redis.call('PUBLISH', ARGV[4], ARGV[5])
return 1
