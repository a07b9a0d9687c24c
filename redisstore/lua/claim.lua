-- claim: lease due tasks of one queue, each under a new token.
-- KEYS[1] due    zset  score = due ms
-- KEYS[2] leased zset  score = lease end ms
-- KEYS[3] leases hash  task ID -> token, worker, claim number, attempt, if it was to be run at once ms of when that was asked
-- KEYS[4] tasks  hash  task ID -> record
-- KEYS[5] state  hash  task ID -> progress
-- KEYS[6] names  zset  tombstones of named tasks, score = expiry ms
-- KEYS[7] meta   hash  settings and counters of the queue
-- KEYS[8] memo   string  the worker's last claim: number, first token, task IDs
-- ARGV[1] now     ms; '' = server TIME
-- ARGV[2] worker  ID
-- ARGV[3] number  of this claim, rising per worker
-- ARGV[4] repeat  '1' = a claim of this number may have run before
-- ARGV[5] budget  1..250
-- ARGV[6] grace   ms, added to a task's timeout to make its lease
-- ARGV[7] bytes   of records after which no further task is leased
-- ARGV[8] version of the settings that the caller knows
-- ARGV[9] free    capacity of the caller as "name=amount", with spaces between; '-' = whatever a task needs fits
-- ARGV[10] skip   of the first due tasks, which do not fit
-- ARGV[11] tombstone ms, of named tasks that are dropped for their age; 0 = none
-- ARGV[12] fresh '1' = leave tasks alone that are to be run at once and were passed on
-- returns {1, now ms, ms until the next task is due or -1, ms until the earliest lease ends or -1,
--          block, ms until a token, settings version, settings or '', paused 0 | 1, created ms, skip next time,
--          1 if tasks that are to be run at once are left or 0, then per task: ID, lease, due ms, record, progress or ''}
--         | {0} no such queue | {-1} a claim with a higher number has run
-- keeps   every ID of tasks is in exactly one of due, leased, done, dead, cancelled; leased and leases hold the same IDs
-- cost    O(budget * log n)
local LONG = string.rep('-', 65)
local now, micros = clock(ARGV[1])
local number, budget, limit = tonumber(ARGV[3]), tonumber(ARGV[5]), tonumber(ARGV[7])
local skip, fresh = tonumber(ARGV[10]), ARGV[12] == '1'
local meta = redis.call('HMGET', KEYS[7], 'version', 'generation', 'paused', 'interval', 'burst', 'concurrent', 'tat',
  'token', 'tombstone', 'created', 'longest', 'slow_interval', 'congested_at', 'ttl')
if not meta[1] then
  return {0}
end
local interval, burst = effective((tonumber(meta[4]) or 0), (tonumber(meta[5]) or 0), tonumber(meta[12]), tonumber(meta[13]), now)

local out = {1, now, -1, -1, '', 0, tonumber(meta[1]), '', (tonumber(meta[3]) or 0), (tonumber(meta[10]) or 0), 0, 0}
out[8] = meta[1] ~= ARGV[8] and redis.call('HGET', KEYS[7], 'config') or ''

local function give(id, lease, due, record, progress)
  local n = #out
  out[n + 1], out[n + 2], out[n + 3], out[n + 4], out[n + 5] = id, lease, due, record, progress or ''
end

local function answer()
  local urgent
  out[3], urgent = untilFirst(KEYS[1], now, fresh)
  out[4], out[12] = (untilFirst(KEYS[2], now)), urgent and 1 or 0
  if out[3] ~= 0 and out[5] ~= 'paused' then
    out[5], out[6] = '', 0 -- nothing that is due was held back
  end
  return out
end

-- A claim that was sent twice: the same answer, as far as the leases still stand.
local memo = redis.call('GET', KEYS[8])
if memo then
  local last, rest = string.match(memo, '^(%d+)(.*)$')
  if tonumber(last) > number then
    return {-1}
  end
  if tonumber(last) == number then
    for id, due in string.gmatch(rest, ' (%S+) (%-?%d+)') do
      local lease = redis.call('HGET', KEYS[3], id)
      if lease and string.find(lease, ' ' .. ARGV[2] .. ' ' .. ARGV[3] .. ' ', 1, true) then
        give(id, lease, tonumber(due), redis.call('HGET', KEYS[4], id), redis.call('HGET', KEYS[5], id))
      end
    end
    return answer()
  end
end

-- How many may be leased: paused, concurrency, rate, in this order. Tasks that are to run at once go by none of these.
local held = redis.call('ZCARD', KEYS[2])
local places, block, tat, clamped = allowance(budget, meta[3] == '1', (tonumber(meta[6]) or 0), held,
  (tonumber(meta[7]) or 0), micros, burst, interval)
local wanted = places > 0 and places or budget
out[5] = block

-- Choose. Tasks from before a purge or past their age are dropped on the way. A record that this version cannot read gets
-- a lease of no more than the grace; the caller puts it off. What does not fit is passed over, to a depth. Records are
-- read many at once, but no more than surely fit into the bytes: the queue knows its longest.
local generation, ttl = tonumber(meta[2]), (tonumber(meta[14]) or 0)
local leased, dues, records, progresses, timeouts = {}, {}, {}, {}, {}
local dropped, named, size, passed, urgent, aged = {}, {}, 0, 0, 0, 0
local free = ARGV[9] ~= '-' and amounts(ARGV[9])
local depth = free and math.min(2 * wanted + 100, 500) or wanted
local ids, scores = first(KEYS[1], fresh, places > 0 and now or -1, skip, depth)
local hasProgress = #ids > 0 and redis.call('HLEN', KEYS[5]) > 0
local step = math.max(math.floor(limit / math.max((tonumber(meta[11]) or limit), 1)), 1)
step = math.min(step, free and wanted or #ids)
local read, base = {}, 0
for i, id in ipairs(ids) do
  if #leased == wanted then
    break
  end
  if i > base + #read then
    base = i - 1
    read = redis.call('HMGET', KEYS[4], unpack(ids, i, math.min(base + step, #ids)))
  end
  local record = read[i - base]
  local _, timeout = header(record or '')
  local need = free and record and needs(record)
  local over = not record and 'lost' or fate(record, generation, ttl, now)
  if over then
    dropped[#dropped + 1] = id
    local kept = tombstone(record or '', tonumber(over == 'expired' and ARGV[11] or meta[9]) or 0)
    if kept > 0 then
      named[#named + 1], named[#named + 2] = now + kept, id
    end
    aged = aged + (over == 'expired' and 1 or 0)
  else
    local fits = not need or take(free, need)
    local progress = fits and hasProgress and redis.call('HGET', KEYS[5], id)
    size = size + #record + #(progress or '')
    local n = #leased + 1
    if not fits then
      passed = passed + 1
    elseif n == 1 or size <= limit then
      leased[n], dues[n], records[n], timeouts[n], progresses[n] = id, scores[i], record, timeout or 0, progress
      urgent = urgent + (tonumber(scores[i]) < 0 and 1 or 0)
    end
    if size > limit then
      depth = i -- the bytes end it
      break
    end
  end
end
if #leased < places then
  out[5] = passed + skip > 0 and 'capacity' or '' -- the limit was not what ended it
  out[11] = #ids >= depth and passed + skip or 0
end

-- From here on only writes, none of which can fail. The first is a removal, which memory pressure never refuses, so that
-- a full store can be drained.
if #dropped > 0 then
  redis.call('ZREM', KEYS[1], unpack(dropped))
  redis.call('HDEL', KEYS[4], unpack(dropped))
  redis.call('HDEL', KEYS[5], unpack(dropped))
  if #named > 0 then
    redis.call('ZADD', KEYS[6], unpack(named))
  end
  if aged > 0 then
    redis.call('HINCRBY', KEYS[7], 'expired', aged)
  end
end
local count, charged = #leased, #leased - urgent
if count > 0 then
  local token = math.max((tonumber(meta[8]) or 0) + 1, now * 1000)
  local holder, grace = ' ' .. ARGV[2] .. ' ' .. ARGV[3] .. ' ', tonumber(ARGV[6])
  local ends, leases, notes, longest, instants = {}, {}, {ARGV[3]}, 60000, {}
  for i, id in ipairs(leased) do
    local progress, length = progresses[i], timeouts[i] + grace
    local lease = string.format('%d', token + i - 1) .. holder .. (attempts(progress) + 1)
    if tonumber(dues[i]) < 0 then
      lease = lease .. ' ' .. string.format('%d', asked(tonumber(dues[i]))) -- settle may have to give that back
    end
    local ending = now + length -- as an index too large for miniredis to make an array of
    instants[ending] = instants[ending] or string.format('%d', ending)
    ends[2 * i - 1], ends[2 * i] = instants[ending], id
    leases[2 * i - 1], leases[2 * i] = id, lease
    notes[2 * i], notes[2 * i + 1] = id, string.format('%d', tonumber(dues[i]))
    longest = math.max(longest, length)
    give(id, lease, tonumber(dues[i]), records[i], progress)
  end
  redis.call('ZREM', KEYS[1], unpack(leased))
  -- Redis keeps a small set or hash as a list that it searches from end to end. It does not once something long was in
  -- it, until it is empty: with a hundred leases open, claims and settles take half the time.
  if held == 0 and count > 8 then
    redis.call('ZADD', KEYS[2], 0, LONG)
    redis.call('HSET', KEYS[3], LONG, LONG)
  end
  redis.call('ZADD', KEYS[2], unpack(ends))
  redis.call('HSET', KEYS[3], unpack(leases))
  if held == 0 and count > 8 then
    redis.call('ZREM', KEYS[2], LONG)
    redis.call('HDEL', KEYS[3], LONG)
  end
  if interval > 0 and (charged > 0 or clamped) then
    redis.call('HSET', KEYS[7], 'token', token + count - 1, 'tat', tat + charged * interval)
  else
    redis.call('HSET', KEYS[7], 'token', token + count - 1)
  end
  -- The memo lives as long as the leases: until then a repetition must find them.
  redis.call('SET', KEYS[8], table.concat(notes, ' '), 'PX', longest)
elseif clamped or ARGV[4] == '1' then
  redis.call('ZREM', KEYS[1], '')
  if clamped then
    redis.call('HSET', KEYS[7], 'tat', tat)
  end
  if ARGV[4] == '1' then
    redis.call('SET', KEYS[8], ARGV[3], 'PX', 60000)
  end
end
if out[5] == 'rate' then
  out[6] = math.max(math.ceil((tat + (charged + 1 - burst) * interval - micros) / 1000), 1)
end
return answer()
