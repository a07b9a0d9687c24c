-- lib_clock: put before every script; the only place that reads the server's clock, once per call.

-- clock is now in ms and in µs, and the first whole ms that is not over: the given instant in ms, or the server's TIME when
-- that is ''. Times are whole numbers, of at most 16 digits, which Lua holds exactly.
local function clock(given)
  local ms = tonumber(given)
  if ms then
    return ms, ms * 1000, ms
  end
  local t = redis.call('TIME')
  local micros = t[1] * 1000000 + t[2]
  return math.floor(micros / 1000), micros, math.ceil(micros / 1000)
end

-- untilDue is how many ms it is until a due time: below 0 when it is over, 0 for one below 0, which is at once, and for none.
local function untilDue(score, now)
  return score and score >= 0 and score - now or 0
end

-- A task that is to be run at once is due below 0: at -(FRESH + ms of when that was asked for), and at -ms once a worker
-- could not run it and has passed it on. So those that nobody has seen come first.
local FRESH = 1000000000000000

-- asked is the instant of such a score.
local function asked(score)
  return -score >= FRESH and -score - FRESH or -score
end

-- untilFirst is how many ms it is until the first score of a zset, or that of a rank: 0 when that is over, -1 when there is none,
-- or no zset. And whether it is below 0. With `fresh` what was passed on does not count.
local function untilFirst(zset, now, fresh, rank)
  local first = zset and redis.call('ZRANGE', zset, rank or '0', rank or '0', 'WITHSCORES')[2]
  if fresh and first and tonumber(first) < 0 and tonumber(first) > -FRESH then
    first = redis.call('ZRANGEBYSCORE', zset, 0, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
  end
  return first and math.max(tonumber(first) - now, 0) or -1, first and tonumber(first) < 0
end
