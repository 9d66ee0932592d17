-- last_entry_id: the last id that a stream has given out, even if its entry has been removed.
-- key: of the stream.
-- Returns: the id; '0-0' if there is no stream.
local function last_entry_id(key)
  local info = redis.call('EXISTS', key) == 1 and redis.call('XINFO', 'STREAM', key) or {}
  for i = 1, #info, 2 do
    if info[i] == 'last-generated-id' then
      return info[i + 1]
    end
  end
  return '0-0'
end
