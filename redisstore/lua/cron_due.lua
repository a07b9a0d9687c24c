-- cron_due: read the cron entries that the leader has to look at, the longest due first.
-- KEYS[1] cron   hash  name -> entry
-- KEYS[2] next   zset  name -> ms when the leader has to look at the entry; 0 = not planned yet
-- ARGV[1] now    ms; '' = server TIME
-- ARGV[2] limit
-- ARGV[3] bytes  of entries after which no further one is returned
-- ARGV[4] skip   of the first ones
-- returns {now ms, ms until the next entry is due that is not returned or -1, then per entry: name, entry}
-- keeps   everything: it only reads
-- cost    O(limit + log n)
local now = clock(ARGV[1])
local names = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', ARGV[4], ARGV[2])
local out, size, count = {now, -1}, 0, 0
for i, name in ipairs(names) do
  local value = redis.call('HGET', KEYS[1], name) or ''
  size = size + #value
  if i > 1 and size > tonumber(ARGV[3]) then
    break
  end
  count = i
  out[2 * i + 1], out[2 * i + 2] = name, value
end
local following = tonumber(ARGV[4]) + count
local left = redis.call('ZRANGE', KEYS[2], following, following, 'WITHSCORES')
if left[2] then
  out[2] = math.max(tonumber(left[2]) - now, 0)
end
return out
