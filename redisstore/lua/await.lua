-- await: note that somebody waits for tasks of one queue, and say which of them have ended.
-- KEYS[1] due    zset  score = due ms
-- KEYS[2] leased zset  score = lease end ms
-- KEYS[3] meta   hash  settings and counters of the queue
-- ARGV[1] now    ms; '' = server TIME
-- ARGV[2] ms     for which settle and delete tell who has ended; renewed in its second half only
-- ARGV[3..] repeated: task ID
-- returns one digit per ID: 1 it neither waits nor runs, 0 it does
-- keeps   everything but the note of who waits; a queue that does not exist has none
-- cost    O(IDs)
local now, long = clock(ARGV[1]), tonumber(ARGV[2])
local meta = redis.call('HMGET', KEYS[3], 'generation', 'awaited')
local due = redis.call('ZMSCORE', KEYS[1], unpack(ARGV, 3))
local leased = redis.call('ZMSCORE', KEYS[2], unpack(ARGV, 3))
local codes = {}
for n = 1, #ARGV - 2 do
  codes[n] = (due[n] or leased[n]) and '0' or '1'
end
local left = (tonumber(meta[2]) or 0) - now
if meta[1] and (left < math.ceil(long / 2) or left > long) then
  redis.call('HDEL', KEYS[3], 'awaited') -- a removal first: memory pressure never refuses it, and then not what follows
  redis.call('HSET', KEYS[3], 'awaited', now + long)
end
return table.concat(codes)
