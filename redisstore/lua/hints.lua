-- hints: read notes of when queues have something to do, soonest first.
-- KEYS[1] index  zset  queue -> ms
-- ARGV[1] now    ms; '' = server TIME
-- ARGV[2] within ms from now
-- ARGV[3] offset
-- ARGV[4] limit
-- returns {queue, ms from now (below 0 = overdue), ...}
-- keeps   everything: it only reads
-- cost    O(limit + log n)
local now = clock(ARGV[1])
local notes = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now + tonumber(ARGV[2]), 'WITHSCORES',
  'LIMIT', ARGV[3], ARGV[4])
for i = 2, #notes, 2 do
  notes[i] = tonumber(notes[i]) - now
end
return notes
