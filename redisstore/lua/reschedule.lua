-- reschedule: give a waiting task another due time.
-- KEYS[1] due    zset  score = due ms
-- KEYS[2] tasks  hash  task ID -> record
-- KEYS[3] meta   hash  settings and counters of the queue
-- KEYS[4] memo   string the caller's last call of its lane: number, answer; see enqueue
-- ARGV[1] now    ms; '' = server TIME
-- ARGV[2] ID     of the task
-- ARGV[3] when   '@' .. due ms, or delay in ms
-- ARGV[4] number of this call, rising per memo
-- returns {1, moved 0 | 1, ms until the earliest task is due (below 0 = overdue)} | {0} no such task | {-1} it does not wait
--         | {-3} a call with a higher number has run
-- keeps   every ID of tasks is in exactly one of due, leased, done, dead, cancelled
-- cost    O(log n)
local now, _, soon = clock(ARGV[1])

-- A call that was sent twice: the same answer, whatever has become of the task meanwhile. It may wait for its backoff by now.
local last = string.match(redis.call('GET', KEYS[4]) or '', '^%d+')
if last == ARGV[4] then
  return {1, 1, untilDue(tonumber(redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]), now)}
elseif last and tonumber(last) > tonumber(ARGV[4]) then
  return {-3}
end

local record = redis.call('HGET', KEYS[2], ARGV[2])
local stored = header(record or '')
if not record or stored and stored < tonumber(redis.call('HGET', KEYS[3], 'generation') or 0) then
  return {0} -- a purge has taken it
end
if not redis.call('ZSCORE', KEYS[1], ARGV[2]) then
  return {-1}
end
local at
if string.byte(ARGV[3], 1) == 64 then
  at = math.max(tonumber(string.sub(ARGV[3], 2)), now)
else
  at = ARGV[3] == '0' and now or soon + tonumber(ARGV[3])
end
local before = tonumber(redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2])
redis.call('ZREM', KEYS[1], '') -- a removal first: memory pressure never refuses it, and then not what follows
redis.call('ZADD', KEYS[1], string.format('%d', at), ARGV[2])
redis.call('SET', KEYS[4], ARGV[4] .. ' 1', 'PX', 60000)
local first = tonumber(redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2])
return {1, at <= before and 1 or 0, untilDue(first, now)}
