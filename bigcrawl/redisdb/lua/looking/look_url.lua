-- look_url: find a URL in Redis, taken or in its host's back queue, and read what its partition has not merged.
-- KEYS[1] hash    taken     seq -> taken URL, until acknowledged
-- KEYS[2] prefix  back:     + host: zset, order -> URL
-- KEYS[3] hash    deaths    seq -> how many nodes died while the URL was in process
-- KEYS[4] hash    dead      key -> dead letter
-- KEYS[5] hash    state     folded, trimmed
-- KEYS[6] stream  inbox
-- ARGV[1] host    ARGV[2] key    ARGV[3] beginning of a member with this key, after its seq
-- ARGV[4] order from which the back queue is searched    ARGV[5] most URLs searched
-- ARGV[6] id after which entries are read; '' for the last that was merged    ARGV[7] most entries
-- Returns: {member or '', URLs ahead of it or -1 if it is taken, order from which to search on or '', what deaths has of
--           it or '', dead letter or '', last id that was trimmed, {entry, ...}}.
-- Guarantee: changes nothing. All values are of the same moment.
-- Lost reply: repeated, it changes nothing.
-- Late: it changes nothing.
-- Cost: O(URLs taken + URLs searched + bytes of the entries).
-- Uses: prelude/read_taken
local host, beginning = ARGV[1], ':' .. ARGV[3]
local member, ahead, on = '', -1, ''

local function is_wanted(found)
  local colon = string.find(found, ':', 1, true)
  return colon and string.sub(found, colon, colon + #beginning - 1) == beginning
end

for _, record in ipairs(redis.call('HVALS', KEYS[1])) do
  local its_host, _, _, found = read_taken(record)
  if its_host == host and is_wanted(found) then
    member = found
  end
end
if member == '' then
  local back, most = KEYS[2] .. host, tonumber(ARGV[5])
  local rows = redis.call('ZRANGEBYSCORE', back, ARGV[4], '+inf', 'WITHSCORES', 'LIMIT', 0, most + 1)
  for i = 1, math.min(#rows, 2 * most), 2 do
    if is_wanted(rows[i]) then
      member, ahead = rows[i], redis.call('ZCOUNT', back, '-inf', '(' .. rows[i + 1])
      break
    end
  end
  on = member == '' and rows[2 * most + 2] or ''
end
local seq = string.match(member, '^%d+')
local state = redis.call('HMGET', KEYS[5], 'folded', 'trimmed')
local from = ARGV[6] ~= '' and ARGV[6] or state[1] or '0-0'
return {
  member, ahead, on, seq and redis.call('HGET', KEYS[3], seq) or '', redis.call('HGET', KEYS[4], ARGV[2]) or '',
  string.match(state[2] or '0-0', '^[^ ]*'), redis.call('XRANGE', KEYS[6], '(' .. from, '+', 'COUNT', ARGV[7]),
}
