-- claim: lease due tasks of one queue, each under a new token.
-- KEYS[1] due    zset  score = due ms
-- KEYS[2] leased zset  score = lease end ms
-- KEYS[3] leases hash  task ID -> token, worker, claim number, attempt ("+" if the task has progress), and if it was to be
--                      run at once ms of when that was asked
-- KEYS[4] tasks  hash  task ID -> record
-- KEYS[5] state  hash  task ID -> progress
-- KEYS[6] names  zset  tombstones of named tasks, score = expiry ms
-- KEYS[7] meta   hash  settings and counters of the queue
-- KEYS[8] memo   string  the worker's last claim: number, IDs of tasks, "=", their due ms
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
--          block, ms until a token, {settings version, settings, paused 0 | 1, created ms} or {} if the caller knows them,
--          skip next time, 1 if tasks that are to be run at once are left or 0, and of the tasks: IDs, with spaces
--          between, leases, with line ends, due ms, with spaces, {records}, {progress or '' of each}, or {} for none}
--         | {0} no such queue | {-1} a claim with a higher number has run
-- keeps   every ID of tasks is in exactly one of due, leased, done, dead, cancelled; leased and leases hold the same IDs
-- cost    O(budget * log n)
local now, micros = clock(ARGV[1])
local number, budget, limit = tonumber(ARGV[3]), tonumber(ARGV[5]), tonumber(ARGV[7])
local skip, fresh = tonumber(ARGV[10]), ARGV[12] == '1'
local meta = redis.call('HMGET', KEYS[7], 'version', 'generation', 'paused', 'interval', 'burst', 'concurrent', 'tat',
  'token', 'tombstone', 'created', 'longest', 'slow_interval', 'congested_at', 'ttl')
if not meta[1] then
  return {0}
end
local interval, burst = effective((tonumber(meta[4]) or 0), (tonumber(meta[5]) or 0), tonumber(meta[12]), tonumber(meta[13]), now)
local out = {1, now, -1, -1, '', 0, {}, 0, 0}
if meta[1] ~= ARGV[8] then
  out[7] = {tonumber(meta[1]), redis.call('HGET', KEYS[7], 'config'), (tonumber(meta[3]) or 0), (tonumber(meta[10]) or 0)}
end

-- `following` and `urgent` are of what is left, as untilFirst says, and `ending` is when the earliest lease ends, if that is known: to
-- look at it takes 2 us.
local function answer(following, urgent, ending, ids, leases, dues, records, progresses)
  out[3], out[4], out[9] = following, ending and ending - now or untilFirst(KEYS[2], now), urgent and 1 or 0
  if out[3] ~= 0 and out[5] ~= 'paused' then
    out[5], out[6] = '', 0 -- nothing that is due was held back
  end
  out[10], out[11], out[12] = table.concat(ids, ' '), table.concat(leases, '\n'), table.concat(dues, ' ')
  out[13], out[14] = records, progresses
  return out
end

-- A claim that was sent twice: the same answer, as far as the leases still stand.
local last, rest = noted(redis.call('GET', KEYS[8]))
local holder = ' ' .. ARGV[2] .. ' ' .. ARGV[3] .. ' '
if last and last > number then
  return {-1}
elseif last == number then
  local following, urgent = untilFirst(KEYS[1], now, fresh)
  return answer(following, urgent, nil, standing(rest, holder, KEYS[3], KEYS[4], KEYS[5]))
end

-- How many may be leased: paused, concurrency, rate, in this order. Tasks that are to run at once go by none of these.
local open = redis.call('ZCARD', KEYS[2])
local places, block, tat, clamped = allowance(budget, meta[3] == '1', (tonumber(meta[6]) or 0), open,
  (tonumber(meta[7]) or 0), micros, burst, interval)
local wanted = places > 0 and places or budget
out[5] = block

-- Choose. Tasks from before a purge or past their age are dropped on the way. A record that this version cannot read gets
-- a lease of no more than the grace; the caller puts it off. What does not fit is passed over, to a depth. Records are
-- read many at once, but no more than surely fit into the bytes: the queue knows its longest.
local generation, ttl = tonumber(meta[2]), (tonumber(meta[14]) or 0)
local fine = prefix(generation)
local leased, dues, records, progresses = {}, {}, {}, {}
local dropped, named, size, passed, aged = {}, {}, 0, 0, 0
local free = ARGV[9] ~= '-' and amounts(ARGV[9])
local depth = free and math.min(2 * wanted + 100, 500) or wanted
local ids, scores = first(KEYS[1], fresh, places > 0 and now or -1, skip, depth)
local hasProgress = #ids > 0 and redis.call('HLEN', KEYS[5]) > 0
local read, base, n, step = {}, 0, 1, readable(#ids, limit, tonumber(meta[11]) or limit, free and wanted or #ids)
for i, id in ipairs(ids) do
  if n > wanted then
    break
  end
  if i > base + #read then
    base = i - 1
    read = redis.call('HMGET', KEYS[4], unpack(ids, i, math.min(base + step, #ids)))
  end
  local record = read[i - base]
  local over = not record and 'lost'
  if record and (ttl > 0 or string.sub(record, 1, 5) ~= fine) then
    over = fate(record, generation, ttl, now)
  end
  if over then
    dropped[#dropped + 1] = id
    local kept = tombstone(record or '', tonumber(over == 'expired' and ARGV[11] or meta[9]) or 0)
    if kept > 0 then
      named[#named + 1], named[#named + 2] = now + kept, id
    end
    aged = aged + (over == 'expired' and 1 or 0)
  else
    local need = free and needs(record)
    local fits = not need or take(free, need)
    local progress = fits and hasProgress and (redis.call('HGET', KEYS[5], id) or '')
    size = size + #record + (progress and #progress or 0)
    if not fits then
      passed = passed + 1
    elseif n == 1 or size <= limit then
      leased[n], dues[n], records[n], progresses[n] = id, scores[i], record, progress or nil
      n = n + 1
    end
    if size > limit then
      depth = i -- the bytes end it
      break
    end
  end
end
if #leased < places then
  out[5] = passed + skip > 0 and 'capacity' or '' -- the limit was not what ended it
  out[8] = #ids >= depth and passed + skip or 0
end

local count, charged, leases, ending = #leased, #leased, {}, nil
-- What is left is looked at before the rest is taken, unless some of those before it stay, too: a key that is emptied is not to be
-- touched again.
local format, taken, foremost = string.format, count + #dropped, not fresh and passed + skip == 0
local left = foremost or taken == 0 or redis.call('ZCARD', KEYS[1]) > taken
local following, urgent = untilFirst(foremost and KEYS[1], now, fresh, format('%d', taken))

-- From here on only writes, none of which can fail. The first is a removal: memory pressure never refuses it.
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
while charged > 0 and tonumber(dues[count - charged + 1]) < 0 do
  charged = charged - 1 -- those that are to be run at once come first
end
if count > 0 then
  local token = math.max((tonumber(meta[8]) or 0) + 1, now * 1000)
  local grace, longest, initial = tonumber(ARGV[6]), 60000, holder .. '1'
  local ends, held, endings = {}, {}, {} -- endings: of leases, as text, by the timeout in a record; many have the same
  for i, id in ipairs(leased) do
    local record, worn = records[i], progresses[i] ~= '' and progresses[i]
    local timeout = string.byte(record, 1) == 1 and string.sub(record, 13, 16) or ''
    local lease = format('%d', token + i - 1) .. (worn and holder .. attempts(worn) + 1 .. '+' or initial)
    if i <= count - charged then
      lease = lease .. ' ' .. format('%d', asked(tonumber(dues[i]))) -- settle may have to give that back
    end
    if not endings[timeout] then
      local _, length = header(record)
      length = (length or 0) + grace
      endings[timeout], longest = format('%d', now + length), math.max(longest, length)
      ending = open == 0 and math.min(ending or now + length, now + length) or nil
    end
    leases[i] = lease
    ends[2 * i - 1], ends[2 * i] = endings[timeout], id
    held[2 * i - 1], held[2 * i] = id, lease
  end
  if foremost then
    redis.call('ZREMRANGEBYRANK', KEYS[1], '0', format('%d', count - 1)) -- several times as fast
  else
    redis.call('ZREM', KEYS[1], unpack(leased))
  end
  grant(KEYS[2], KEYS[3], ends, held, open == 0 and count > 8)
  local spent = interval > 0 and (charged > 0 or clamped) and {'tat', tat + charged * interval} or {}
  redis.call('HSET', KEYS[7], 'token', format('%d', token + count - 1), unpack(spent))
  -- The memo lives as long as the leases: until then a repetition must find them.
  redis.call('SET', KEYS[8], note(ARGV[3], leased, dues), 'PX', longest)
elseif clamped or ARGV[4] == '1' then
  redis.call('ZREM', KEYS[6], '')
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
if not foremost then
  following, urgent = untilFirst(left and KEYS[1], now, fresh)
end
return answer(following, urgent, ending, leased, leases, dues, records, progresses)
