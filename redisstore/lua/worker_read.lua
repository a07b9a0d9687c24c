-- worker_read: read rows of workers, and who leads.
-- KEYS[1] workers zset  worker ID -> last seen, ms
-- KEYS[2] leader  string  ID of the worker that leads, with a time to live
-- KEYS[3..] row   hash  one per ID
-- ARGV[1] now    ms; '' = server TIME
-- ARGV[2..] IDs
-- returns {now, ID of the leader or '', ms that it has left or -1, then for each whole row: ID, last seen ms, record,
--          state, created ms}
-- keeps   everything: it only reads
-- cost    O(IDs)
local now = clock(ARGV[1])
local leader = redis.call('GET', KEYS[2])
local reply = {now, leader or '', leader and redis.call('PTTL', KEYS[2]) or -1}
for i = 2, #ARGV do
  local seen = redis.call('ZSCORE', KEYS[1], ARGV[i])
  local row = redis.call('HMGET', KEYS[i + 1], 'record', 'state', 'created')
  if seen and row[1] and row[2] and row[3] then
    local n = #reply
    reply[n + 1], reply[n + 2], reply[n + 3] = ARGV[i], tonumber(seen), row[1]
    reply[n + 4], reply[n + 5] = row[2], tonumber(row[3])
  end
end
return reply
