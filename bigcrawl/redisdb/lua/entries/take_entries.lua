-- take_entries: end the previous batch, and take the next one from a user's list, or one whose node is late.
-- KEYS[1] any   list     list, set, zset or stream, which the user writes; taken from the left of a list, at random,
--                        by the highest score, the oldest first
-- KEYS[2] hash  entries  batch -> msgpack [number, entry, score, entry, score, ...]; '' -> the number of the last batch
-- KEYS[3] zset  leases   end of its lease ms -> batch
-- ARGV[1] now_ms (0: this server's clock)    ARGV[2] name for the batch    ARGV[3] lease ms
-- ARGV[4] name of the batch that has ended; '' if there is none
-- ARGV[5] most entries of a batch; 0: take nothing, but renew the lease of the batch
-- ARGV[6] bytes after which no more entries are taken    ARGV[7] most bytes of an entry; of a larger one, the batch
--         has only the size
-- Returns: {name of the batch, its msgpack}; {} if there is nothing to take; {'', type} if the key is of another type.
-- Guarantee: an entry is in the list or in a batch until the batch has ended. No two batches have the same name and
--            number.
-- Lost reply: repeated with the same name, it returns the same batch. If that was another node's, its lease ends first.
-- Late: a batch that was taken too late is taken over when its lease ends.
-- Cost: O(entries of a batch).
-- Uses: prelude/now_ms
local now = now_ms(ARGV[1])
if ARGV[4] ~= '' then
  redis.call('HDEL', KEYS[2], ARGV[4])
  redis.call('ZREM', KEYS[3], ARGV[4])
end
local until_ms = now + tonumber(ARGV[3])
local batch = redis.call('HGET', KEYS[2], ARGV[2])
if batch then
  redis.call('ZADD', KEYS[3], until_ms, ARGV[2])
  return ARGV[5] == '0' and {} or {ARGV[2], batch}
end
if ARGV[5] == '0' then
  return {}
end
local late = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now, 'LIMIT', 0, 1)
if late[1] then
  redis.call('ZADD', KEYS[3], until_ms, late[1])
  return {late[1], redis.call('HGET', KEYS[2], late[1]) or ''}
end
local kind = redis.call('TYPE', KEYS[1]).ok
local function take()
  if kind == 'list' then
    return redis.call('LPOP', KEYS[1]) or nil, ''
  end
  if kind == 'set' then
    return redis.call('SPOP', KEYS[1]) or nil, ''
  end
  if kind == 'zset' then
    local first = redis.call('ZPOPMAX', KEYS[1])
    return first[1], first[2]
  end
  local first = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
  if not first then
    return nil
  end
  redis.call('XDEL', KEYS[1], first[1])
  local pairs_of_it, fields = first[2], {}
  for at = 1, #pairs_of_it, 2 do
    fields[pairs_of_it[at]] = pairs_of_it[at + 1]
  end
  return #pairs_of_it == 2 and fields['data'] or cjson.encode(fields), ''
end
if kind == 'none' then
  return {}
end
if kind ~= 'list' and kind ~= 'set' and kind ~= 'zset' and kind ~= 'stream' then
  return {'', kind}
end
local number = redis.call('HINCRBY', KEYS[2], '', 1)
redis.call('HSET', KEYS[2], ARGV[2], '') -- a user without a right to write these keys has taken nothing yet
redis.call('ZADD', KEYS[3], until_ms, ARGV[2])
local row, bytes = {number}, 0
for _ = 1, tonumber(ARGV[5]) do
  local entry, score = take()
  if not entry then
    break
  end
  bytes = bytes + #entry
  row[#row + 1] = #entry <= tonumber(ARGV[7]) and entry or #entry
  row[#row + 1] = score
  if bytes >= tonumber(ARGV[6]) then
    break
  end
end
if #row == 1 then -- an empty stream is there
  redis.call('HDEL', KEYS[2], ARGV[2])
  redis.call('ZREM', KEYS[3], ARGV[2])
  return {}
end
batch = cmsgpack.pack(row)
redis.call('HSET', KEYS[2], ARGV[2], batch)
return {ARGV[2], batch}
