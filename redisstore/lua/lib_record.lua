-- lib_record: put before every script; the layout of a record's header is in record.go.

-- header is the generation, the flag "named" and the timeout in ms of a record; nothing when it is not of this format.
local function header(record)
  local version, g1, g2, g3, g4 = string.byte(record, 1, 5)
  local flags, t1, t2, t3, t4 = string.byte(record, 12, 16)
  if version == 1 and t4 then
    return ((g1 * 256 + g2) * 256 + g3) * 256 + g4, flags % 2 == 1, ((t1 * 256 + t2) * 256 + t3) * 256 + t4
  end
end
