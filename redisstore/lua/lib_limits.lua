-- lib_limits: put before claim; how much a queue's rate and a worker's capacity leave.

-- bucket is GCRA in whole microseconds: when the bucket will be full as it is stored, how many tokens it has now, and
-- whether what is stored had to be cut. The cut keeps a clock that jumped back, or a rate that was very low before, from
-- blocking the queue. It has to be stored even if nothing is leased: the wait for the first token counts from it.
local function bucket(stored, micros, burst, interval)
  local latest = micros + burst * interval
  local tat = math.min(math.max(stored, micros), latest)
  return tat, math.max(math.floor((latest - tat) / interval), 0), stored > latest
end

-- allowance is how many of `budget` tasks a queue lets go now, and which limit says so if it is fewer, of which `held`
-- run; and when its bucket will be full, and whether that had to be cut. A burst and interval of 0 are no rate.
local function allowance(budget, paused, concurrent, held, stored, micros, burst, interval)
  if paused then
    return 0, 'paused', 0, false
  end
  local places, block = budget, ''
  if concurrent > 0 and concurrent - held < places then
    places, block = math.max(concurrent - held, 0), 'concurrency'
  end
  local tat, tokens, clamped = 0, places, false
  if places > 0 and interval > 0 then
    tat, tokens, clamped = bucket(stored, micros, burst, interval)
  end
  if tokens < places then
    places, block = tokens, 'rate'
  end
  return places, block, tat, clamped
end

-- first is the first members of a zset up to a score, and their scores: those below 0, with `fresh` without what was passed
-- on, and then the others after the first skip of them.
local function first(zset, fresh, to, skip, limit)
  local members, scores, n = {}, {}, 0
  local function read(low, high, past)
    local found = redis.call('ZRANGEBYSCORE', zset, low, high, 'WITHSCORES', 'LIMIT', past, limit - n)
    for i = 1, #found, 2 do
      n = n + 1
      members[n], scores[n] = found[i], found[i + 1]
    end
  end
  to = string.format('%d', to) -- a number that is given to a command is made text in a way that takes several times as long
  if not fresh and (skip == 0 or to == '-1') then
    read('-inf', to, '0')
  else
    read('-inf', fresh and -FRESH or -1, '0')
    if to ~= '-1' and n < limit then
      read('0', to, skip)
    end
  end
  return members, scores
end

-- readable is how many of `count` records to read at once, if none is longer than `longest` and they are to have no more
-- than `limit` bytes, or at most so many.
local function readable(count, limit, longest, most)
  if count <= 1 then
    return count
  end
  return math.min(math.max(math.floor(limit / math.max(longest, 1)), 1), most)
end

-- amounts reads "name=amount" with spaces between.
local function amounts(text)
  local out = {}
  for name, amount in string.gmatch(text, '([^ =]+)=(%d+)') do
    out[name] = tonumber(amount)
  end
  return out
end

-- needs is what a record requires of a worker; nothing when it requires nothing.
local function needs(record)
  if #record < 18 or not has(record, 4) then
    return nil
  end
  local at = has(record, 8) and 22 or 17
  return #record > at and amounts(string.sub(record, at + 2, at + 1 + number(record, at, 2))) or nil
end

-- take takes what is needed from what is free, and says whether it was there.
local function take(free, need)
  for name, amount in pairs(need) do
    if amount > (free[name] or 0) then
      return false
    end
  end
  for name, amount in pairs(need) do
    free[name] = (free[name] or 0) - amount
  end
  return true
end
