-- read_queue: read some entries of another crawler's queue, and change nothing.
-- KEYS[1] any  list  a list or zset
-- ARGV[1] rank of the first entry, from 0: in a zset by score; in a list from the end that ARGV[2] names
-- ARGV[2] the end of a list that leaves first: 'left' or 'right'    ARGV[3] entries_max
-- ARGV[4] bytes after which no more entries are read    ARGV[5] most bytes of an entry; of a larger one, its size
-- Returns: {type of the key, entries in it, entry, entry, ...}; an integer for a large entry.
-- Guarantee: nothing is written. Ranks change if others write meanwhile.
-- Lost reply: repeated, it reads again.
-- Late: it changes nothing.
-- Cost: O(entries read), and for a list O(rank) too.
local kind = redis.call('TYPE', KEYS[1]).ok
local length = 0
if kind == 'list' then
  length = redis.call('LLEN', KEYS[1])
elseif kind == 'zset' then
  length = redis.call('ZCARD', KEYS[1])
end
local found, bytes = {kind, length}, 0
local at = tonumber(ARGV[1])
local behind = math.min(length, at + tonumber(ARGV[3]))
while at < behind and bytes < tonumber(ARGV[4]) do
  local last = math.min(behind, at + 16) - 1
  local some
  if kind == 'zset' then
    some = redis.call('ZRANGE', KEYS[1], at, last)
  elseif ARGV[2] == 'left' then
    some = redis.call('LRANGE', KEYS[1], at, last)
  else
    some = redis.call('LRANGE', KEYS[1], -last - 1, -at - 1)
  end
  for i = 1, #some do
    local entry = some[ARGV[2] == 'right' and kind == 'list' and #some + 1 - i or i]
    bytes = bytes + #entry
    found[#found + 1] = #entry <= tonumber(ARGV[5]) and entry or #entry
  end
  at = last + 1
end
return found
