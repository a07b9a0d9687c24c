-- edit: replace the record of a waiting task, if it still is what was read.
-- KEYS[1] due    zset  score = due ms
-- KEYS[2] tasks  hash  task ID -> record
-- KEYS[3] meta   hash  settings and counters of the queue
-- KEYS[4] memo   string the caller's last call: number, one digit per task; see enqueue
-- ARGV[1] number of this call, rising per memo
-- ARGV[2] ID     of the task
-- ARGV[3] read   the record that was read
-- ARGV[4] record to put in its place, with the same stamp
-- returns 1 replaced, also by an earlier run of this call | 0 no such task | -1 it does not wait | -2 the record is another
--         | -3 a call with a higher number has run
-- keeps   every ID of tasks is in exactly one of due, leased, done, dead, cancelled; when the task is due, and what it has been through
-- cost    O(log n)

-- A call that was sent twice: the same answer, whatever has become of the task meanwhile. To compare with the record would
-- not do, because somebody else may have made the same change.
local memo = string.match(redis.call('GET', KEYS[4]) or '', '^%d+')
local last = memo and tonumber(memo)
if last and last >= tonumber(ARGV[1]) then
  return last == tonumber(ARGV[1]) and 1 or -3
end

local record = redis.call('HGET', KEYS[2], ARGV[2])
local stored = header(record or '')
local meta = redis.call('HMGET', KEYS[3], 'generation', 'longest')
if not record or stored and stored < (tonumber(meta[1]) or 0) then
  return 0 -- a purge has taken it
end
if not redis.call('ZSCORE', KEYS[1], ARGV[2]) then
  return -1
end
if record ~= ARGV[3] then
  return -2
end
redis.call('HDEL', KEYS[2], '') -- a removal first: memory pressure never refuses it, and then not what follows
redis.call('HSET', KEYS[2], ARGV[2], ARGV[4])
if #ARGV[4] > (tonumber(meta[2]) or 0) then
  redis.call('HSET', KEYS[3], 'longest', #ARGV[4]) -- as in enqueue: claim goes by it to stay within its bytes
end
redis.call('SET', KEYS[4], ARGV[1] .. ' 1', 'PX', 60000)
return 1
