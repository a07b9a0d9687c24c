-- worker_reap: mark those workers dead that were not seen for too long.
-- KEYS[1] workers zset  worker ID -> last seen, ms
-- KEYS[2] leader  string  ID of the worker that leads, with a time to live
-- KEYS[3..] row   hash  one per ID
-- ARGV[1] now    ms; '' = server TIME
-- ARGV[2] threshold ms
-- ARGV[3] name   of this call: what an earlier run of it has marked counts as marked by this one
-- ARGV[4] channel
-- ARGV[5] message
-- ARGV[6..] IDs
-- returns as worker_read, the rows that were marked
-- keeps   rows of workers seen since; never removes one
-- cost    O(IDs)
local now = clock(ARGV[1])
local leader = redis.call('GET', KEYS[2])
local reply = {now, leader or '', leader and redis.call('PTTL', KEYS[2]) or -1}
local alive = {} -- places in KEYS of the rows to mark
for i = 6, #ARGV do
  local seen = redis.call('ZSCORE', KEYS[1], ARGV[i])
  local row = redis.call('HMGET', KEYS[i - 3], 'record', 'state', 'created', 'reaped')
  if seen and row[1] and row[2] and row[3] and tonumber(seen) < now - tonumber(ARGV[2]) then
    if row[2] ~= 'dead' then
      alive[#alive + 1] = i - 3
    end
    if row[2] ~= 'dead' or row[4] == ARGV[3] then
      local n = #reply
      reply[n + 1], reply[n + 2], reply[n + 3] = ARGV[i], tonumber(seen), row[1]
      reply[n + 4], reply[n + 5] = 'dead', tonumber(row[3])
    end
  end
end
for _, i in ipairs(alive) do
  redis.call('HDEL', KEYS[i], 'state') -- a removal first: memory pressure never refuses it, and then not what follows
  redis.call('HSET', KEYS[i], 'state', 'dead', 'reaped', ARGV[3])
end
if #alive > 0 then
  redis.call('PUBLISH', ARGV[4], ARGV[5])
end
return reply
