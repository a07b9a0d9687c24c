-- lib_entry: put before the scripts of cron entries; the layout of a stored entry is in cron_entry.go.

-- entry takes a stored entry apart: its header, and its content, which no script looks into. Nothing when there is no
-- entry or it is not of this format. Numbers stay text.
local function entry(value)
  local revision, paused, since, upcoming, start = string.match(value or '', '^1 (%d+) ([01]) (%d+) (%d+) ()')
  if start then
    return {revision = revision, paused = paused, since = since, upcoming = upcoming}, string.sub(value, start)
  end
end

-- stored puts an entry together again.
local function stored(revision, paused, since, upcoming, content)
  return '1 ' .. revision .. ' ' .. paused .. ' ' .. since .. ' ' .. upcoming .. ' ' .. content
end

-- following is the revision after a change, as text: above all that were given before, also to entries that are gone, and
-- at least the time, so that it rises even if the server has lost its last writes.
local function following(last, before, now)
  return string.format('%d', math.max((tonumber(last) or 0) + 1, (tonumber(before and before.revision) or 0) + 1, now))
end
