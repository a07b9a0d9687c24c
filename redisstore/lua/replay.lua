-- replay: make dead tasks wait again, due now, as if they had just been stored.
-- KEYS[1] dead   zset  dead and retained, score = expiry ms
-- KEYS[2] due    zset  score = due ms
-- KEYS[3] tasks  hash  task ID -> record
-- KEYS[4] state  hash  task ID -> progress
-- KEYS[5] meta   hash  settings and counters of the queue
-- KEYS[6] memo   string the caller's last call of its lane: number, answer; see enqueue
-- ARGV[1] now    ms; '' = server TIME
-- ARGV[2] bytes  of records after which no further task is replayed
-- ARGV[3] number of this call, rising per memo
-- ARGV[4..] repeated: task ID, the ID that it gets, which no other call ever gives; '' = it keeps its own
-- returns {how many tasks were read, moved 0 | 1, ms until the earliest task is due or -1, one digit per task read:
--          1 it waits again, by this run or under its new ID by an earlier one, 0 it is not dead, or the new ID exists}
--         | {-1} a call with a higher number has run
-- keeps   every ID of tasks is in exactly one of due, leased, done, dead, cancelled
-- cost    O(tasks * log n)
local now = clock(ARGV[1])
local limit, instant = tonumber(ARGV[2]), string.format('%d', now)

-- A call that was sent twice: the same answer, whatever has become of the tasks meanwhile.
local last, answered = string.match(redis.call('GET', KEYS[6]) or '', '^(%d+) (%d+)$')
if last == ARGV[3] then
  local first = untilFirst(KEYS[2], now)
  return {#answered, 1, first, answered}
elseif last and tonumber(last) > tonumber(ARGV[3]) then
  return {-1}
end

local before = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')[2]
-- A new stamp: a purge that has begun before now does not mean what waits from now on.
local generation = tonumber(redis.call('HGET', KEYS[5], 'generation') or 1)
local given = {}
for i = 4, #ARGV, 2 do
  given[#given + 1] = ARGV[i]
end
local expiries = redis.call('ZMSCORE', KEYS[1], unpack(given))

-- Decide everything first; records are read once it is known that they are not too many.
local codes, old, targets, left, due, taken, size, moved = {}, {}, {}, {}, {}, {}, 0, 0
for i, id in ipairs(given) do
  local new = ARGV[2 * i + 3]
  local length = redis.call('HSTRLEN', KEYS[3], id)
  if size > 0 and size + length > limit then
    break
  end
  local renamed = new ~= ''
  local target = renamed and new or id
  local exists = renamed and redis.call('HEXISTS', KEYS[3], new) == 1
  local dead = expiries[i] and (length > 0 or redis.call('HEXISTS', KEYS[3], id) == 1) -- damage may have left it empty
  codes[i] = '0'
  local again = taken[id] or taken[target] -- twice in one call: the first counts
  if dead and not exists and not again then
    codes[i], size = '1', size + length
    taken[id], taken[target] = true, true
    local n = #old + 1
    old[n], targets[n] = id, target
    due[2 * n - 1], due[2 * n] = instant, target
    if renamed then
      left[#left + 1] = id
    end
  elseif exists and not dead and not again then
    codes[i], moved, taken[id] = '1', 1, true -- an earlier run of this call did it, and the answer that said so is lost
  end
end
if #old > 0 then
  local records = redis.call('HMGET', KEYS[3], unpack(old))
  local entries = {}
  for i, record in ipairs(records) do
    entries[2 * i - 1], entries[2 * i] = targets[i], restamped(record, generation, now, targets[i] ~= old[i])
  end
  redis.call('ZREM', KEYS[1], unpack(old)) -- a removal first: memory pressure never refuses it, and then not what follows
  redis.call('HDEL', KEYS[4], unpack(old))
  redis.call('HSET', KEYS[3], unpack(entries))
  if #left > 0 then
    redis.call('HDEL', KEYS[3], unpack(left))
  end
  redis.call('ZADD', KEYS[2], unpack(due))
  redis.call('SET', KEYS[6], ARGV[3] .. ' ' .. table.concat(codes), 'PX', 60000)
  if not before or now < tonumber(before) then
    moved = 1
  end
end
return {#codes, moved, untilFirst(KEYS[2], now), table.concat(codes)}
