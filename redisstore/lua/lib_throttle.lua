-- lib_throttle: put before claim, settle and counts; how receivers that are congested slow a queue down.

local GROWTH, FREE = 10000, 60000 -- ms: after each the rate grows by half; after so many a queue without a rate is free

-- effective is how many us there are between two starts now, and how many may come at once, in a queue whose settings say
-- `interval` and `burst` (0 = no rate) and which was slowed down to `slow`. `since` is when a receiver last was congested,
-- in ms. If the clock has gone back behind that, nothing is known.
local function effective(interval, burst, slow, since, now)
  local age = now - (since or 0)
  local steps = math.floor(math.max(age, 0) / GROWTH)
  if not slow or age < -1000 or steps > 60 or interval == 0 and age >= FREE then
    return interval, burst
  end
  for _ = 1, steps do
    slow = math.floor(slow * 2 / 3)
  end
  if slow <= interval then
    return interval, burst
  end
  -- The default burst of such a rate, and no more than the settings': a fifth of a second's worth, 10 to 500.
  local fifth = math.min(math.max(math.ceil(200000 / slow), 10), 500)
  return slow, interval > 0 and math.min(burst, fifth) or fifth
end

-- congestion is what a queue's meta is to hold after `sent` requests, of which `failed` had no good end and `congested`
-- met a receiver that asked for less. If that was one in twenty of those of the last 10 to 20 s, or more than half of
-- those of a window of 10 s failed, the rate is halved, at most once a second: not below a tenth of the settings' or 0.1/s.
-- The rate of a queue without one is the most that it was seen to do, in the last 10 s or since it began to do something,
-- and it does not go below 1/s.
local function congestion(meta, now, sent, failed, congested)
  local m = redis.call('HMGET', meta, 'interval', 'slow_interval', 'congested_at', 'halved_at', 'window_at',
    'window_sent', 'window_failed', 'window_before', 'slowest_interval', 'window_congested', 'before_congested')
  local interval, since, opened = (tonumber(m[1]) or 0), (tonumber(m[3]) or 0), (tonumber(m[5]) or 0)
  local all, bad, before = (tonumber(m[6]) or 0), (tonumber(m[7]) or 0), (tonumber(m[8]) or 0)
  local asked, askedBefore = (tonumber(m[10]) or 0), (tonumber(m[11]) or 0)
  if now - opened >= GROWTH or now < opened then
    local recent = now >= opened and now - opened < 2 * GROWTH
    before, askedBefore = recent and all or 0, recent and asked or 0
    opened, all, bad, asked = now, 0, 0, 0
  end
  all, bad, asked = all + sent, bad + failed, asked + congested
  local fields = {'window_at', opened, 'window_sent', all, 'window_failed', bad, 'window_before', before,
    'window_congested', asked, 'before_congested', askedBefore}
  local function add(name, value)
    fields[#fields + 1], fields[#fields + 2] = name, value
  end
  if (congested == 0 or (asked + askedBefore) * 20 < all + before) and (all < 20 or bad * 2 <= all) then
    return fields
  end
  local last = tonumber(m[4]) or 0
  if now - last >= 1000 or now < last then
    local current, slowest = effective(interval, 0, tonumber(m[2]), since, now), (tonumber(m[9]) or 1000000)
    if interval > 0 then
      slowest = math.max(math.min(interval * 10, 10000000), interval)
    else
      local did = math.floor(math.max(now - opened, 100) * 1000 / all)
      did = before > 0 and math.min(did, math.floor(GROWTH * 1000 / before)) or did
      slowest = math.min(did * 10, current > 0 and slowest or 1000000)
      current = current > 0 and current or did
    end
    current = math.min(current * 2, slowest)
    add('slow_interval', current)
    add('slowest_interval', slowest)
    add('halved_at', now)
  end
  add('congested_at', now)
  return fields
end
