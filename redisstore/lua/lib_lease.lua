-- lib_lease: put before claim and settle; leases that are open.

-- grant adds leases, given as their ends and values. Redis keeps a small set or hash as a list that it searches from end to end. It
-- does not once something long was in it, until it is empty: with a hundred leases open, claims and settles take half the time. So
-- the first of `many` have that put in, and taken out when they are there.
local function grant(leased, leases, ends, held, many)
  local LONG = many and string.rep('-', 65)
  if LONG then
    redis.call('ZADD', leased, 0, LONG)
    redis.call('HSET', leases, LONG, LONG)
  end
  redis.call('ZADD', leased, unpack(ends))
  redis.call('HSET', leases, unpack(held))
  if LONG then
    redis.call('ZREM', leased, LONG)
    redis.call('HDEL', leases, LONG)
  end
end

-- forgetOpen forgets, of the leases of some tasks, those that have not ended: what was extended since a sweep has read it is its
-- holder's still.
local function forgetOpen(ids, leases, leased, now)
  for n, id in ipairs(ids) do
    local ending = leases[n] and redis.call('ZSCORE', leased, id)
    if ending and tonumber(ending) > now then
      leases[n] = false
    end
  end
end
