-- extend: move the ends of leases of one queue, each only if it is the current one.
-- KEYS[1] leased zset  score = lease end ms
-- KEYS[2] leases hash  task ID -> lease
-- ARGV[1] now    ms; '' = server TIME
-- ARGV[2..] repeated: task ID, lease, ms from now to the new end
-- returns one digit per lease (1 moved, 0 lease is not current)
-- keeps   leased and leases hold the same IDs
-- cost    O(leases * log n)
local now = clock(ARGV[1])
local codes, ends = {}, {}
for i = 2, #ARGV, 3 do
  local code = '0'
  if redis.call('HGET', KEYS[2], ARGV[i]) == ARGV[i + 1] then
    code = '1'
    ends[#ends + 1], ends[#ends + 2] = now + tonumber(ARGV[i + 2]), ARGV[i]
  end
  codes[#codes + 1] = code
end
if #ends > 0 then
  -- The removal first: memory pressure never refuses it, and then not what follows.
  redis.call('ZREM', KEYS[1], '')
  redis.call('ZADD', KEYS[1], unpack(ends))
end
return table.concat(codes)
