-- delete: remove tasks of one queue, wherever they stand. Attempts that run lose their leases.
-- KEYS[1] due    zset  score = due ms
-- KEYS[2] leased zset  score = lease end ms
-- KEYS[3] leases hash  task ID -> lease
-- KEYS[4] tasks  hash  task ID -> record
-- KEYS[5] state  hash  task ID -> progress
-- KEYS[6] done   zset  succeeded and retained, score = expiry ms
-- KEYS[7] dead   zset  dead and retained, score = expiry ms
-- KEYS[8] cancelled zset and retained, score = expiry ms
-- KEYS[9] names  zset  tombstones of named tasks, score = expiry ms
-- KEYS[10] meta  hash  settings and counters of the queue
-- KEYS[11] memo  string the caller's last call of its lane: number, answer; see enqueue
-- ARGV[1] now    ms; '' = server TIME
-- ARGV[2] tombstone ms, for named tasks that were live; 0 = none. It is at least an hour for a derived ID.
-- ARGV[3] only   '1' = dead tasks only
-- ARGV[4] bytes  of records after which no further task is removed
-- ARGV[5] channel of tasks that have ended   ARGV[6] queue
-- ARGV[7] number of this call, rising per memo
-- ARGV[8..] repeated: task ID
-- returns {how many IDs were read, ms of the shortest tombstone that this run has made or -1,
--          one digit per ID read: 1 removed, now or by an earlier run of this call, 0 no such task, or not one to remove}
--         | {-1} a call with a higher number has run
-- keeps   every ID of tasks is in exactly one of due, leased, done, dead, cancelled; leased and leases hold the same IDs
-- cost    O(IDs * log n)
local now = clock(ARGV[1])
local window, onlyDead, limit = tonumber(ARGV[2]), ARGV[3] == '1', tonumber(ARGV[4])

-- A call that was sent twice: what has one of these IDs by now may be another task.
local last, answered = string.match(redis.call('GET', KEYS[11]) or '', '^(%d+) (%d+)$')
if last == ARGV[7] then
  local shortest = untilFirst(KEYS[9], now)
  return {#answered, shortest, answered}
elseif last and tonumber(last) > tonumber(ARGV[7]) then
  return {-1}
end

local codes, gone, named, seen, size, shortest = {}, {}, {}, {}, 0, -1
for i = 8, #ARGV do
  local id = ARGV[i]
  local length = redis.call('HSTRLEN', KEYS[4], id)
  if size > 0 and size + length > limit then
    break
  end
  codes[#codes + 1] = '0'
  local there = length > 0 or redis.call('HEXISTS', KEYS[4], id) == 1 -- damage may have left a record empty
  if there and not seen[id] and (not onlyDead or redis.call('ZSCORE', KEYS[7], id)) then
    codes[#codes], seen[id], size = '1', true, size + length
    gone[#gone + 1] = id
    local live = not onlyDead and (redis.call('ZSCORE', KEYS[1], id) or redis.call('ZSCORE', KEYS[2], id))
    local kept = live and tombstone(redis.call('HGET', KEYS[4], id), window) or 0
    if kept > 0 then
      named[#named + 1], named[#named + 2] = string.format('%d', now + kept), id
      shortest = shortest < 0 and kept or math.min(shortest, kept)
    end
  end
end
if #gone > 0 then
  for _, zset in ipairs({KEYS[1], KEYS[2], KEYS[6], KEYS[7], KEYS[8]}) do
    if zset == KEYS[7] or not onlyDead then
      redis.call('ZREM', zset, unpack(gone))
    end
  end
  redis.call('HDEL', KEYS[3], unpack(gone))
  redis.call('HDEL', KEYS[4], unpack(gone))
  redis.call('HDEL', KEYS[5], unpack(gone))
  if #named > 0 then
    redis.call('ZADD', KEYS[9], unpack(named))
  end
  redis.call('SET', KEYS[11], ARGV[7] .. ' ' .. table.concat(codes), 'PX', 60000)
  if (tonumber(redis.call('HGET', KEYS[10], 'awaited')) or 0) > now then
    redis.pcall('PUBLISH', ARGV[5], ARGV[6] .. ' ' .. table.concat(gone, ' ')) -- as in settle
  end
end
return {#codes, shortest, table.concat(codes)}
