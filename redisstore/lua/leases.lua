-- leases: read leases of one queue: those that have ended, or those of given tasks. What has ended and was leased to nobody, as
-- damage to the keys may leave it, would be in the way of those behind it for ever: it is put right on the way.
-- KEYS[1] leased zset  score = lease end ms
-- KEYS[2] leases hash  task ID -> lease
-- KEYS[3] tasks  hash  task ID -> record
-- KEYS[4] state  hash  task ID -> progress
-- KEYS[5] due    zset  score = due ms
-- KEYS[6] done   zset  succeeded and retained, score = expiry ms
-- KEYS[7] dead   zset  dead and retained, score = expiry ms
-- KEYS[8] cancelled zset and retained, score = expiry ms
-- ARGV[1] now    ms; '' = server TIME
-- ARGV[2] limit  of ended leases
-- ARGV[3] bytes  of records after which no further lease is returned
-- ARGV[4..] repeated: task ID; none = leases that have ended
-- returns {now ms, ms until the earliest end of a lease not returned or -1, how many IDs were read, how many of them were
--          leased to nobody, then per lease: ID, lease, record or '', progress or ''}
-- keeps   leased and leases hold the same IDs; a task that is in no other index is due
-- cost    O(limit or IDs, * log n if there is damage)
local now = clock(ARGV[1])
local ids = {}
if #ARGV > 3 then
  for i = 4, #ARGV do
    ids[#ids + 1] = ARGV[i]
  end
else
  ids = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[2])
end

-- kept says whether a task has a record and is in none of the other indexes.
local function kept(id)
  for _, zset in ipairs({KEYS[5], KEYS[6], KEYS[7], KEYS[8]}) do
    if redis.call('ZSCORE', zset, id) then
      return false
    end
  end
  return redis.call('HEXISTS', KEYS[3], id) == 1
end

local out, size, limit = {now, -1, 0, 0}, 0, tonumber(ARGV[3])
local torn, back = {}, {}
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
  elseif #ARGV <= 3 then
    torn[#torn + 1] = id
    if kept(id) then
      back[#back + 1], back[#back + 2] = now, id
    end
  end
  out[3] = i
end
local following = redis.call('ZRANGE', KEYS[1], out[3], out[3], 'WITHSCORES')
if #ARGV <= 3 and following[2] then
  out[2] = math.max(tonumber(following[2]) - now, 0)
end
if #torn > 0 then
  -- The removal first: memory pressure never refuses it, and then not what follows.
  redis.call('ZREM', KEYS[1], unpack(torn))
  if #back > 0 then
    redis.call('ZADD', KEYS[5], unpack(back))
  end
  out[4] = #torn
end
return out
