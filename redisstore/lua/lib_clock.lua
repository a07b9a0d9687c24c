-- lib_clock: put before every script; the only place that reads the server's clock, once per call.

-- clock is now in ms and in µs: the given instant in ms, or the server's TIME when that is ''. Times are whole numbers, of
-- at most 16 digits, which Lua holds exactly.
local function clock(given)
  local ms = tonumber(given)
  if ms then
    return ms, ms * 1000
  end
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000), t[1] * 1000000 + t[2]
end
