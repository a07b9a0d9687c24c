-- lib_throttle: put before claim, settle and counts; how receivers that are congested slow a queue down.

local GROWTH, FREE = 10000, 60000 -- ms: after each the rate grows by half; after so many a queue without a rate is free

-- throttled is how many us there are between two starts now, and how many may come at once, in a queue whose settings say
-- `interval` and `burst` (0 = no rate) and which was slowed down to `cut`. `since` is when a receiver last was congested,
-- in ms. If the clock has gone back behind that, nothing is known.
local function throttled(interval, burst, cut, since, now)
  local age = now - (since or 0)
  local steps = math.floor(math.max(age, 0) / GROWTH)
  if not cut or age < -1000 or steps > 60 or interval == 0 and age >= FREE then
    return interval, burst
  end
  for _ = 1, steps do
    cut = math.floor(cut * 2 / 3)
  end
  if cut <= interval then
    return interval, burst
  end
  -- The default burst of such a rate, and no more than the settings': a fifth of a second's worth, 10 to 500.
  local fifth = math.min(math.max(math.ceil(200000 / cut), 10), 500)
  return cut, interval > 0 and math.min(burst, fifth) or fifth
end

-- congestion is what a queue's meta is to hold after `sent` requests, of which `failed` had no good end and `congested`
-- met a receiver that asked for less. Then, or when more than half of those of 10 s fail, the rate is halved, at most once
-- a second: not below a tenth of the settings' or 0.1/s, nor, in a queue without a rate, below 1/s. Such a queue begins at
-- half of what it did in 10 s.
local function congestion(meta, now, sent, failed, congested)
  local m = redis.call('HMGET', meta, 'interval', 'slow', 'slowed', 'cut', 'window', 'sent', 'failed', 'before')
  local interval, since, opened = (tonumber(m[1]) or 0), (tonumber(m[3]) or 0), (tonumber(m[5]) or 0)
  local all, bad, before = (tonumber(m[6]) or 0), (tonumber(m[7]) or 0), (tonumber(m[8]) or 0)
  if now - opened >= GROWTH or now < opened then
    before = now >= opened and now - opened < 2 * GROWTH and all or 0
    opened, all, bad = now, 0, 0
  end
  all, bad = all + sent, bad + failed
  local fields = {'window', opened, 'sent', all, 'failed', bad, 'before', before}
  if congested == 0 and (all < 20 or bad * 2 <= all) then
    return fields
  end
  local last = tonumber(m[4]) or 0
  if now - last >= 1000 or now < last then
    local current = throttled(interval, 0, tonumber(m[2]), since, now)
    if current == 0 then
      current = math.floor(GROWTH * 1000 / math.max(all, before))
    end
    local slowest = interval == 0 and 1000000 or math.max(math.min(interval * 10, 10000000), interval)
    fields[9], fields[10], fields[11], fields[12] = 'slow', math.min(current * 2, slowest), 'cut', now
  end
  local n = #fields
  fields[n + 1], fields[n + 2] = 'slowed', now
  return fields
end
