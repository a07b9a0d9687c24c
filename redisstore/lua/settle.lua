-- settle: apply the outcomes of attempts at tasks of one queue, each only if its lease is the current one.
-- KEYS[1] due    zset  score = due ms
-- KEYS[2] leased zset  score = lease end ms
-- KEYS[3] leases hash  task ID -> lease, which ends with " 1" if the task has no progress
-- KEYS[4] tasks  hash  task ID -> record
-- KEYS[5] state  hash  task ID -> progress
-- KEYS[6] done   zset  succeeded and retained, score = expiry ms
-- KEYS[7] dead   zset  dead and retained, score = expiry ms
-- KEYS[8] names  zset  tombstones of named tasks, score = expiry ms
-- KEYS[9] meta   hash  settings and counters of the queue
-- KEYS[10] memo  string  the worker's last settle: number, one digit per outcome
-- ARGV[1] now    ms; '' = server TIME
-- ARGV[2] number of this settle, rising per worker; '0' = not remembered; '-1' = and only of leases that have ended
-- ARGV[3] sent   HTTP requests among these attempts
-- ARGV[4] failed of them, and ARGV[5] congested: answered by a receiver that asked for less
-- ARGV[6] channel of tasks that have ended   ARGV[7] queue
-- ARGV[8..] repeated: task ID, lease, and with spaces between: outcome (ok, retry, dead, release, return), ms (delay; ok,
--           dead: retention, 0 = gone), ms of its tombstone (0 = none), and, unless it is as it was, progress
-- returns {1, one digit per outcome (1 applied, 2 applied, and the task is gone for its age or a purge, 0 lease is not
--          current), moved 0 | 1, if so
--          ms until the earliest task is due, and ms until the earliest expiry, if this call added it, or -1}
-- keeps   every ID of tasks is in exactly one of due, leased, done, dead, cancelled; leased and leases hold the same IDs
-- cost    O(outcomes * log n)
local now, _, soon = clock(ARGV[1])

-- before is when the earliest task was due before this call. Who asks has the score made text, which takes 2 us.
local function before()
  return tonumber(redis.call('ZRANGE', KEYS[1], '0', '0', 'WITHSCORES')[2])
end

local ids = {}
for i = 8, #ARGV, 3 do
  ids[#ids + 1] = ARGV[i]
end
local leases = redis.call('HMGET', KEYS[3], unpack(ids))
if ARGV[2] == '-1' then forgetOpen(ids, leases, KEYS[2], now) end

-- A settle that was sent twice: the same answer. Its leases were closed, so who finds all of them was not sent before.
local current = 0
while current < #ids and leases[current + 1] == ARGV[3 * current + 9] do
  current = current + 1
end
if tonumber(ARGV[2]) > 0 and current < #ids then
  local memo = redis.call('GET', KEYS[10])
  local last, codes = string.match(memo or '', '^(%d+) (%d+)$')
  if last == ARGV[2] then
    local expiry = -1 -- whatever of these this settle has added
    for _, zset in ipairs({KEYS[6], KEYS[7], KEYS[8]}) do
      local wait = untilFirst(zset, now)
      if wait >= 0 and (expiry < 0 or wait < expiry) then
        expiry = wait
      end
    end
    return {1, codes, 1, untilDue(before(), now), expiry}
  end
end

local meta = redis.call('HMGET', KEYS[9], 'generation', 'tombstone', 'ttl', 'awaited')
local generation, ttl = (tonumber(meta[1]) or 1), (tonumber(meta[3]) or 0)

-- Decide everything first. An outcome of one task may come twice in a call; the second has no lease.
local codes, closed, gone, worn, state = {}, {}, {}, {}, {} -- worn: those that are gone and have progress
local due, done, dead, names, taken, expiry, earliest = {}, {}, {}, {}, {}, nil, nil
local count = {ok = 0, retry = 0, dead = 0, release = 0, ['return'] = 0, expired = 0, purged = 0}

local awaited, ended = (tonumber(meta[4]) or 0) > now, {} -- does somebody wait; what does not come back, if so

local function keep(zset, at, id)
  local n = #zset
  zset[n + 1], zset[n + 2] = string.format('%d', at), id
  if not expiry or at < expiry then
    expiry = at
  end
end

-- read takes apart what became of an attempt; once, as most have had the same end.
local ends = {}
local function read(text)
  local e = ends[text]
  if not e then
    local outcome, ms, kept, progress = string.match(text, '^(%l+) (%d+) (%d+) ?(.*)$')
    e = {outcome = outcome, ms = tonumber(ms), kept = tonumber(kept), progress = progress}
    ends[text] = e
  end
  return e.outcome, e.ms, e.kept, e.progress
end

for n, id in ipairs(ids) do
  local code = '0'
  if not taken[id] and leases[n] == ARGV[3 * n + 6] then
    local outcome, ms, kept, progress = read(ARGV[3 * n + 7])
    code, taken[id] = '1', true
    closed[#closed + 1] = id
    local back = outcome == 'retry' or outcome == 'release' or outcome == 'return'
    if back and (generation > 1 or ttl > 0) then
      local record = redis.call('HGET', KEYS[4], id) or ''
      local over = record == '' and 'purged' or fate(record, generation, ttl, now)
      if over then
        back, ms, outcome, code = false, 0, over, '2'
        kept = tombstone(record, tonumber(over == 'purged' and meta[2] or kept) or 0)
      end
    end
    count[outcome] = count[outcome] + 1
    if back then
      local k = #due
      local at = ms > 0 and soon + ms or now
      local urgent = outcome == 'return' and tonumber(string.match(leases[n], '^%S+ %S+ %S+ %S+ (%d+)$') or '')
      if urgent then -- it was to be run at once, and was not: with a delay the worker cannot, and passes it on
        at = -(ms > 0 and urgent or FRESH + urgent)
      end
      due[k + 1], due[k + 2] = string.format('%d', at), id
      if not earliest or at < earliest then
        earliest = at
      end
    else
      if awaited then
        ended[#ended + 1] = id
      end
      if ms <= 0 then
        gone[#gone + 1] = id
        if string.sub(leases[n], -2) ~= ' 1' then
          worn[#worn + 1] = id
        end
      elseif outcome == 'ok' then
        keep(done, now + ms, id)
      else
        keep(dead, now + ms, id)
      end
      if kept > 0 then
        keep(names, now + kept, id)
      end
    end
    if progress ~= '' and (back or ms > 0) then
      local k = #state
      state[k + 1], state[k + 2] = id, progress
    end
  end
  codes[n] = code
end
codes = table.concat(codes)
if expiry then
  -- Only what expires before everything else is news; but what is long over was never told of.
  for _, zset in ipairs({KEYS[6], KEYS[7], KEYS[8]}) do
    local first = redis.call('ZRANGE', zset, '0', '0', 'WITHSCORES')[2]
    if expiry and first and tonumber(first) <= expiry and tonumber(first) > now - 300000 then
      expiry = nil
    end
  end
end

local moved = false
if earliest then
  local first = before()
  moved = not first or earliest < first
  earliest = moved and earliest or first
end

-- From here on only writes, none of which can fail. The first is a removal, which memory pressure never refuses.
if #closed > 0 then
  redis.call('ZREM', KEYS[2], unpack(closed))
  redis.call('HDEL', KEYS[3], unpack(closed))
  if #gone > 0 then
    redis.call('HDEL', KEYS[4], unpack(gone))
  end
  if #due > 0 then
    redis.call('ZADD', KEYS[1], unpack(due))
  end
  if #done > 0 then
    redis.call('ZADD', KEYS[6], unpack(done))
  end
  if #dead > 0 then
    redis.call('ZADD', KEYS[7], unpack(dead))
  end
  if #names > 0 then
    redis.call('ZADD', KEYS[8], unpack(names))
  end
  if #state > 0 then
    redis.call('HSET', KEYS[5], unpack(state))
  end
  if #worn > 0 then
    redis.call('HDEL', KEYS[5], unpack(worn))
  end
  if ARGV[3] ~= '0' then
    redis.call('HSET', KEYS[9], unpack(congestion(KEYS[9], now, tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]))))
  end
  for _, outcome in ipairs({'ok', 'retry', 'dead', 'expired'}) do
    if count[outcome] > 0 then
      redis.call('HINCRBY', KEYS[9], outcome, count[outcome])
    end
  end
  if tonumber(ARGV[2]) > 0 then
    redis.call('SET', KEYS[10], ARGV[2] .. ' ' .. codes, 'PX', '60000')
  end
end
if #ended > 0 then
  -- Whoever may not publish there still settles: then those who wait find out when they look again.
  redis.pcall('PUBLISH', ARGV[6], ARGV[7] .. ' ' .. table.concat(ended, ' '))
end
return {1, codes, moved and 1 or 0, untilDue(earliest, now), expiry and math.max(expiry - now, 0) or -1}
