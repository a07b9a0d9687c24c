-- purge_slice: remove those of the given waiting tasks that were stored before the last purge of their queue.
-- KEYS[1] due    zset  score = due ms
-- KEYS[2] tasks  hash  task ID -> record
-- KEYS[3] state  hash  task ID -> progress
-- KEYS[4] names  zset  tombstones of named tasks, score = expiry ms
-- KEYS[5] meta   hash  settings and counters of the queue
-- ARGV[1] now    ms; '' = server TIME
-- ARGV[2] bytes  of records after which no further task is read
-- ARGV[3..] repeated: task ID
-- returns {how many IDs were read, how many tasks were removed}
-- keeps   every ID of tasks is in exactly one of due, leased, done, dead, cancelled
-- cost    O(IDs * log n)
local now = clock(ARGV[1])
local meta = redis.call('HMGET', KEYS[5], 'generation', 'tombstone')
local generation, window = (tonumber(meta[1]) or 1), (tonumber(meta[2]) or 0)
local old, named, size, count = {}, {}, 0, 0
for i = 3, #ARGV do
  local id = ARGV[i]
  local record = redis.call('ZSCORE', KEYS[1], id) and redis.call('HGET', KEYS[2], id)
  if record then
    size = size + #record
    local stored = header(record)
    if stored and stored < generation then
      old[#old + 1] = id
      local kept = tombstone(record, window)
      if kept > 0 then
        named[#named + 1], named[#named + 2] = now + kept, id
      end
    end
  end
  count = count + 1
  if size > tonumber(ARGV[2]) then
    break
  end
end
if #old > 0 then
  redis.call('ZREM', KEYS[1], unpack(old))
  redis.call('HDEL', KEYS[2], unpack(old))
  redis.call('HDEL', KEYS[3], unpack(old))
  if #named > 0 then
    redis.call('ZADD', KEYS[4], unpack(named))
  end
end
return {count, #old}
