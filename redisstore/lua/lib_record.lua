-- lib_record: put before every script; the layout of a record's header is in record.go.

-- STAMP is how many bytes of a record a stamp is: version, generation (4), created ms (6).
local STAMP = 11

local function bytes(n, count)
  local out = {}
  for i = count, 1, -1 do
    out[i] = string.char(n % 256)
    n = math.floor(n / 256)
  end
  return table.concat(out)
end

-- prefix is how a record of this format begins that was stored under a generation.
local function prefix(generation)
  return generation == 1 and '\1\0\0\0\1' or string.char(1) .. bytes(generation, 4)
end

-- stamp begins the record of a task that is stored under a generation, in ms.
local function stamp(generation, now)
  return prefix(generation) .. bytes(now, 6)
end

-- header is the generation and the timeout in ms of a record; nothing when it is not of this format.
local function header(record)
  local version, g1, g2, g3, g4 = string.byte(record, 1, 5)
  local t1, t2, t3, t4 = string.byte(record, 13, 16)
  if version == 1 and t4 then
    return ((g1 * 256 + g2) * 256 + g3) * 256 + g4, ((t1 * 256 + t2) * 256 + t3) * 256 + t4
  end
end

-- number reads a big-endian number of `count` bytes.
local function number(text, at, count)
  local n = 0
  for i = at, at + count - 1 do
    n = n * 256 + string.byte(text, i)
  end
  return n
end

-- created is when a record of this format was stored, in ms.
local function created(record)
  return number(record, 6, 6)
end

-- restamped is a record that is stored anew under a generation, later than before, and, when it gets a generated ID,
-- without the flags of a named or derived one. A record that is not of this format stays as it is: whoever knows it may
-- know better.
local function restamped(record, generation, now, renamed)
  local version, flags = string.byte(record, 1), string.byte(record, STAMP + 1)
  if version ~= 1 or not flags then
    return record
  end
  if renamed then
    flags = flags - flags % 4
  end
  return stamp(generation, math.max(now, created(record) + 1)) .. string.char(flags) .. string.sub(record, STAMP + 2)
end

-- has says whether a record of this format has a flag: 1 named, 2 derived, 4 requirements, 8 a window of its own.
local function has(record, flag)
  return math.floor(string.byte(record, 12) / flag) % 2 == 1
end

-- fate says whether a task is not to be attempted any more, though its record is there: 'purged' when it is from before a
-- purge, 'expired' when it is `ttl` ms old (0 = never). Nothing for one that is, or whose record is not of this format.
local function fate(record, generation, ttl, now)
  local stored = header(record)
  if stored and stored < generation then
    return 'purged'
  elseif stored and ttl > 0 and created(record) <= now - ttl then
    return 'expired'
  end
end

-- tombstone is how many ms the name of a record stays taken when its task is removed, if it is `window` for others: 0
-- for one without a name, and at least an hour for a derived ID.
local function tombstone(record, window)
  if string.byte(record, 1) ~= 1 or #record < 16 or not has(record, 1) then
    return 0
  end
  if has(record, 8) and #record >= 21 then
    window = number(record, 17, 5)
  end
  return has(record, 2) and math.max(window, 3600000) or window
end

-- attempts is how many attempts a task's progress tells of.
local function attempts(progress)
  local p1, p2, p3, p4 = string.byte(progress or '', 2, 5)
  return p4 and ((p1 * 256 + p2) * 256 + p3) * 256 + p4 or 0
end
