-- inspect: read tasks of one queue, wherever they stand.
-- KEYS[1] due    zset  score = due ms
-- KEYS[2] leased zset  score = lease end ms
-- KEYS[3] leases hash  task ID -> lease
-- KEYS[4] tasks  hash  task ID -> record
-- KEYS[5] state  hash  task ID -> progress
-- KEYS[6] done   zset  succeeded and retained, score = expiry ms
-- KEYS[7] dead   zset  dead and retained, score = expiry ms
-- KEYS[8] cancelled zset and retained, score = expiry ms
-- ARGV[1] bytes  of records after which no further task is returned
-- ARGV[2..] repeated: task ID
-- returns {how many IDs were read, then per task found: ID, where (due, leased, done, dead, cancelled), score, lease or '',
--          record, progress or ''}
-- keeps   everything: it only reads
-- cost    O(IDs)
local words = {[KEYS[1]] = 'due', [KEYS[2]] = 'leased', [KEYS[6]] = 'done', [KEYS[7]] = 'dead', [KEYS[8]] = 'cancelled'}
local out, size, limit, ids = {0}, 0, tonumber(ARGV[1]), {unpack(ARGV, 2)}
local where, scores = {}, {}
for _, zset in ipairs({KEYS[1], KEYS[2], KEYS[6], KEYS[7], KEYS[8]}) do
  for i, score in ipairs(redis.call('ZMSCORE', zset, unpack(ids))) do
    if score then
      where[i], scores[i] = words[zset], score
    end
  end
end
local leases = redis.call('HMGET', KEYS[3], unpack(ids))
for i, id in ipairs(ids) do
  local record = where[i] and redis.call('HGET', KEYS[4], id)
  if record then
    local progress = redis.call('HGET', KEYS[5], id) or ''
    size = size + #record + #progress
    if i > 1 and size > limit then
      break
    end
    local n = #out
    out[n + 1], out[n + 2], out[n + 3], out[n + 4] = id, where[i], scores[i], leases[i] or ''
    out[n + 5], out[n + 6] = record, progress
  end
  out[1] = i
end
return out
