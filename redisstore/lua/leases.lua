-- leases: read leases of one queue: those that have ended, or those of given tasks.
-- KEYS[1] leased zset  score = lease end ms
-- KEYS[2] leases hash  task ID -> lease
-- KEYS[3] tasks  hash  task ID -> record
-- KEYS[4] state  hash  task ID -> progress
-- ARGV[1] now    ms; '' = server TIME
-- ARGV[2] limit  of ended leases
-- ARGV[3] bytes  of records after which no further lease is returned
-- ARGV[4..] repeated: task ID; none = leases that have ended
-- returns {now ms, ms until the earliest end of a lease not returned or -1, how many IDs were read,
--          then per lease: ID, lease, record or '', progress or ''}
-- keeps   everything: it only reads
-- cost    O(limit or IDs)
local now = clock(ARGV[1])
local ids = {}
if #ARGV > 3 then
  for i = 4, #ARGV do
    ids[#ids + 1] = ARGV[i]
  end
else
  ids = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[2])
end
local out, size, limit = {now, -1, 0}, 0, tonumber(ARGV[3])
for i, id in ipairs(ids) do
  local lease = redis.call('HGET', KEYS[2], id)
  if lease then
    local record = redis.call('HGET', KEYS[3], id) or ''
    local progress = redis.call('HGET', KEYS[4], id) or ''
    size = size + #record + #progress
    if i > 1 and size > limit then
      break
    end
    local n = #out
    out[n + 1], out[n + 2], out[n + 3], out[n + 4] = id, lease, record, progress
  end
  out[3] = i
end
local following = redis.call('ZRANGE', KEYS[1], out[3], out[3], 'WITHSCORES')
if #ARGV <= 3 and following[2] then
  out[2] = math.max(tonumber(following[2]) - now, 0)
end
return out
