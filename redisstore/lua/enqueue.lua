-- enqueue: store tasks of one queue, each on its own.
-- KEYS[1] due    zset  score = due ms
-- KEYS[2] tasks  hash  task ID -> record
-- KEYS[3] names  zset  tombstones of named tasks, score = expiry ms
-- KEYS[4] meta   hash  settings and counters of the queue
-- KEYS[5] state  hash  task ID -> progress
-- KEYS[6] done   zset  succeeded and retained, score = expiry ms
-- KEYS[7] dead   zset  dead and retained, score = expiry ms
-- KEYS[8] cancelled zset and retained, score = expiry ms
-- KEYS[9] memo   string the caller's last call: number, one digit per task
-- ARGV[1] now    ms; '' = server TIME
-- ARGV[2] config settings for a queue that does not exist; '' = refuse the call
-- ARGV[3] number of this call, rising per memo
-- ARGV[4] requires: what the caller takes the queue's to be
-- ARGV[5] open   '1' = also into a queue that drains
-- ARGV[6] when   of each task '@' .. due ms, or delay in ms, with spaces between; '0' = all at once
-- ARGV[7..] repeated: task ID, flags and timeout and body of the record
-- returns {1, moved 0 | 1, ms until the earliest task is due (below 0 = overdue), one digit per task} | {0} no such queue
--         | {-1} a call with a higher number has run | {-2, requires} the queue's are others | {-3} the queue drains
--         digits: 1 stored, 2 stored by an earlier run of this call, 3 name is live, 4 name has a tombstone
-- keeps   every ID of tasks is in exactly one of due, leased, done, dead, cancelled
-- cost    O(tasks * log n)
local now, _, soon = clock(ARGV[1])

local meta = redis.call('HMGET', KEYS[4], 'generation', 'longest', 'requires', 'draining')
local generation, longest = meta[1], (tonumber(meta[2]) or 0)
if not generation and ARGV[2] == '' then
  return {0}
end
local fresh = stamp(tonumber(generation or 1), now)
local head = redis.call('ZRANGE', KEYS[1], '0', '0', 'WITHSCORES')
local before = tonumber(head[2])

-- A call that was sent twice: the same answer, whatever has become of its tasks meanwhile.
local last, answered = string.match(redis.call('GET', KEYS[9]) or '', '^(%d+) (%d+)$')
if last == ARGV[3] then
  return {1, 1, untilDue(before, now), answered}
elseif last and tonumber(last) > tonumber(ARGV[3]) then
  return {-1}
end

-- Decide everything first.
if (meta[3] or '') ~= ARGV[4] then
  return {-2, meta[3] or ''}
elseif meta[4] and ARGV[5] ~= '1' then
  return {-3}
end
local ids, longer = {}, longest
for i = 7, #ARGV, 2 do
  ids[#ids + 1] = ARGV[i]
end
local present = {}
if longest * #ids <= 524288 then
  present = redis.call('HMGET', KEYS[2], unpack(ids))
else
  -- Long records are read only where they may be equal to what came.
  for n, id in ipairs(ids) do
    if redis.call('HEXISTS', KEYS[2], id) == 1 then
      local equal = redis.call('HSTRLEN', KEYS[2], id) == STAMP + #ARGV[2 * n + 6]
      present[n] = equal and redis.call('HGET', KEYS[2], id) or '' -- some other record
    end
  end
end

-- over says in which index (1 done, 2 dead, 3 cancelled) a task is that is retained for longer than it should be: clean-up
-- is about to come.
local function over(id)
  for i, zset in ipairs({KEYS[6], KEYS[7], KEYS[8]}) do
    local expiry = redis.call('ZSCORE', zset, id)
    if expiry and tonumber(expiry) <= now then
      return i
    end
  end
end

local when = {} -- of each task, if not at once
if ARGV[6] ~= '0' then
  for text in string.gmatch(ARGV[6], '%S+') do
    when[#when + 1] = text
  end
end
local due, records, codes, earliest, seen = {}, {}, {}, before, {}
local moved, k = 0, 0
local stale = {{}, {}, {}} -- by index
local atOnce, instants = string.format('%d', now), {} -- instants: as text, each made once
for n, id in ipairs(ids) do
  local record, code = ARGV[2 * n + 6], '1'
  local named = string.byte(record, 1) % 2 == 1
  if named or present[n] then
    local stored = seen[id] or present[n]
    local same = stored and string.sub(stored, STAMP + 1) == record
    local index = stored and not same and not seen[id] and over(id)
    if stored and not index then
      code = '3'
      if same then
        code = '2'
        if before and tonumber(redis.call('ZSCORE', KEYS[1], id)) == before then
          moved = 1 -- the answer that said so is lost
        end
      end
    elseif named and tonumber(redis.call('ZSCORE', KEYS[3], id) or 0) > now then
      code = '4'
    end
    if code == '1' and index then
      table.insert(stale[index], id)
    end
  end
  if code == '1' then
    local at, text = now, atOnce
    if when[n] and when[n] ~= '0' then
      at = string.byte(when[n], 1) == 64 and math.max(tonumber(string.sub(when[n], 2)), now) or soon + tonumber(when[n])
      instants[at] = instants[at] or string.format('%d', at)
      text = instants[at]
    end
    local stamped = fresh .. record
    due[k + 1], due[k + 2] = text, id
    records[k + 1], records[k + 2] = id, stamped
    k = k + 2
    if named then
      seen[id] = stamped
    end
    if #stamped > longer then
      longer = #stamped
    end
    if not earliest or at < earliest then
      earliest = at
    end
  end
  codes[n] = code
end

local answer = table.concat(codes)
-- The first write is one that memory pressure refuses, so a full store takes nothing.
if #due > 0 then
  redis.call('ZADD', KEYS[1], unpack(due))
  redis.call('HSET', KEYS[2], unpack(records))
  local worn = {}
  for i, zset in ipairs({KEYS[6], KEYS[7], KEYS[8]}) do
    if #stale[i] > 0 then
      redis.call('ZREM', zset, unpack(stale[i]))
      for _, id in ipairs(stale[i]) do
        worn[#worn + 1] = id
      end
    end
  end
  if #worn > 0 then
    redis.call('HDEL', KEYS[5], unpack(worn))
  end
  if longer > longest then
    redis.call('HSET', KEYS[4], 'longest', longer) -- lets claim read many records at once and stay within its bytes
  end
  if not generation then
    redis.call('HSET', KEYS[4], 'generation', 1, 'version', now, 'config', ARGV[2], 'created', now)
  end
  redis.call('SET', KEYS[9], ARGV[3] .. ' ' .. answer, 'PX', '60000')
end
if earliest ~= before then
  moved = 1
end
return {1, moved, untilDue(earliest, now), answer}
