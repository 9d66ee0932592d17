-- last_entry_id: the id that a stream gave out last, whether or not its entry is still there.
-- key: of the stream.
-- Returns: the id; '0-0' where there is no stream.
local function last_entry_id(key)
  local info = redis.call('EXISTS', key) == 1 and redis.call('XINFO', 'STREAM', key) or {}
  for i = 1, #info, 2 do
    if info[i] == 'last-generated-id' then
      return info[i + 1]
    end
  end
  return '0-0'
end
