-- lib_memo: put before claim; the memo of a worker's last claim: its number and, if it leased anything, the IDs, "=" and
-- the due times.

-- note is such a memo.
local function note(number, ids, dues)
  return number .. ' ' .. table.concat(ids, ' ') .. ' = ' .. table.concat(dues, ' ')
end

-- noted is what a memo tells of: the number of the claim, and the rest, for `standing`.
local function noted(memo)
  local number, rest = string.match(memo or '', '^(%d+)(.*)$')
  return tonumber(number), rest
end

-- standing is what a claim has leased, as far as its leases still stand: IDs, leases, due times, records and progress.
-- `mine` is in each of them.
local function standing(rest, mine, held, tasks, state)
  local ids, leases, dues, records, progresses = {}, {}, {}, {}, {}
  local claimed, instants = string.match(rest, '^ (.*) = (.*)$')
  local due = {}
  for at in string.gmatch(instants or '', '%S+') do
    due[#due + 1] = at
  end
  local read = 0
  for id in string.gmatch(claimed or '', '%S+') do
    local lease = redis.call('HGET', held, id)
    read = read + 1
    if lease and string.find(lease, mine, 1, true) then
      local n = #ids + 1
      ids[n], leases[n], dues[n], records[n] = id, lease, due[read], redis.call('HGET', tasks, id) or ''
      progresses[n] = redis.call('HGET', state, id) or ''
    end
  end
  return ids, leases, dues, records, progresses
end
