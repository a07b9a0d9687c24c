-- replay: make dead tasks wait again, due now, as if they had never been attempted.
-- KEYS[1] dead   zset  dead and retained, score = expiry ms
-- KEYS[2] due    zset  score = due ms
-- KEYS[3] tasks  hash  task ID -> record
-- KEYS[4] state  hash  task ID -> progress
-- ARGV[1] now    ms; '' = server TIME
-- ARGV[2..] IDs  of tasks
-- returns {moved 0 | 1, ms until the earliest task is due or -1, one digit per ID: 1 replayed, 0 it is not dead}
-- keeps   every ID of tasks is in exactly one of due, leased, done, dead
-- cost    O(IDs * log n)
local now = clock(ARGV[1])
local before = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')[2]
local codes, ids, due = {}, {}, {}
local instant = string.format('%d', now)
for i = 2, #ARGV do
  local id = ARGV[i]
  local expiry = redis.call('ZSCORE', KEYS[1], id)
  codes[i - 1] = '0'
  if expiry and not due[id] and redis.call('HEXISTS', KEYS[3], id) == 1 then
    codes[i - 1] = '1'
    due[id] = true
    ids[#ids + 1] = id
  end
end
if #ids > 0 then
  redis.call('ZREM', KEYS[1], unpack(ids)) -- a removal first: memory pressure never refuses it, and then not what follows
  redis.call('HDEL', KEYS[4], unpack(ids))
  local entries = {}
  for i, id in ipairs(ids) do
    entries[2 * i - 1], entries[2 * i] = instant, id
  end
  redis.call('ZADD', KEYS[2], unpack(entries))
end
local moved = #ids > 0 and (not before or now < tonumber(before))
return {moved and 1 or 0, untilFirst(KEYS[2], now), table.concat(codes)}
