-- repair: bring entries of tasks that contradict each other in line, so that each task is in one place or gone. No script
-- leaves such entries behind: they come of keys that were evicted, deleted or restored by hand.
-- KEYS[1] due    zset  score = due ms
-- KEYS[2] leased zset  score = lease end ms
-- KEYS[3] leases hash  task ID -> lease
-- KEYS[4] tasks  hash  task ID -> record
-- KEYS[5] state  hash  task ID -> progress
-- KEYS[6] done   zset  succeeded and retained, score = expiry ms
-- KEYS[7] dead   zset  dead and retained, score = expiry ms
-- KEYS[8] cancelled zset and retained, score = expiry ms
-- ARGV[1] now    ms; '' = server TIME
-- ARGV[2] slack  ms, that an attempt may need beyond its timeout from now
-- ARGV[3..] repeated: task ID
-- returns how many tasks were brought in line
-- keeps   every ID of tasks is in exactly one of due, leased, done, dead, cancelled; leased and leases hold the same IDs
-- cost    O(IDs * log n)
local now = clock(ARGV[1])
local surplus, unleased, worn, due, ends = {}, {}, {}, {}, {} -- surplus: by index, as unleased and worn what is to be removed
for _, zset in ipairs({KEYS[1], KEYS[2], KEYS[6], KEYS[7], KEYS[8]}) do
  surplus[zset] = {}
end
local repaired = 0
for i = 3, #ARGV do
  local id, at = ARGV[i], {} -- at: by index
  local record, lease = redis.call('HGET', KEYS[4], id), redis.call('HGET', KEYS[3], id)
  for _, zset in ipairs({KEYS[1], KEYS[2], KEYS[6], KEYS[7], KEYS[8]}) do
    at[zset] = redis.call('ZSCORE', zset, id) or nil
  end
  local ended = at[KEYS[6]] and KEYS[6] or at[KEYS[7]] and KEYS[7] or at[KEYS[8]] and KEYS[8]
  local place -- where it belongs; nowhere without a record, as nobody knows what it was to do
  if record and ended then
    place = ended -- an end is never taken back
  elseif record and (lease or not at[KEYS[1]] and tonumber(at[KEYS[2]] or 0) > now) then
    place = KEYS[2] -- a worker may be at it, even if its lease is lost: until its time is over
  elseif record then
    place = KEYS[1]
  end

  local touched = false
  for _, zset in ipairs({KEYS[1], KEYS[2], KEYS[6], KEYS[7], KEYS[8]}) do
    if at[zset] and zset ~= place then
      table.insert(surplus[zset], id)
      touched = true
    end
  end
  if lease and place ~= KEYS[2] then
    unleased[#unleased + 1] = id
    touched = true
  end
  if not record and redis.call('HEXISTS', KEYS[5], id) == 1 then
    worn[#worn + 1] = id
    touched = true
  end
  if place and not at[place] then
    if place == KEYS[1] then
      due[#due + 1], due[#due + 2] = string.format('%d', now), id
    else
      local _, timeout = header(record)
      ends[#ends + 1], ends[#ends + 2] = string.format('%d', now + (timeout or 0) + tonumber(ARGV[2])), id
    end
    touched = true
  end
  repaired = repaired + (touched and 1 or 0)
end

redis.call('ZREM', KEYS[1], '') -- the first write is a removal, which memory pressure never refuses
-- What is to be there comes before what is to go, or an index could be empty in between.
if #due > 0 then
  redis.call('ZADD', KEYS[1], unpack(due))
end
if #ends > 0 then
  redis.call('ZADD', KEYS[2], unpack(ends))
end
for _, zset in ipairs({KEYS[1], KEYS[2], KEYS[6], KEYS[7], KEYS[8]}) do
  if #surplus[zset] > 0 then
    redis.call('ZREM', zset, unpack(surplus[zset]))
  end
end
if #unleased > 0 then
  redis.call('HDEL', KEYS[3], unpack(unleased))
end
if #worn > 0 then
  redis.call('HDEL', KEYS[5], unpack(worn))
end
return repaired
