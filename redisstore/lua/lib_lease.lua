-- lib_lease: put before settle.

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
