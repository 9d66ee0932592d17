-- fold_tallies: replace the tallies of gone nodes by their sum.
-- KEYS[1] hash  tallies  node id -> its tallies
-- KEYS[2] zset  beats    score = last beat ms, member = node id
-- ARGV[1] field of the sum of gone nodes    ARGV[2] SHA-1 of that sum before ('' if there was none)
-- ARGV[3] the new total
-- ARGV[4...] per node: its id, SHA-1 of its tallies as they were read
-- Returns: 1; 0, and nothing is written, if any of them has changed since it was read, or a node has a beat.
-- Guarantee: a node's counts are in its own field or in the sum, never in both or neither.
-- Lost reply: repeated, it returns 0 and changes nothing, because the nodes' fields are gone.
-- Late: like a repeat if another fold came first, else as in time.
-- Cost: O(nodes and their bytes).
local function is_as_read(field, sha1)
  local value = redis.call('HGET', KEYS[1], field)
  return (value and redis.sha1hex(value) or '') == sha1
end
if not is_as_read(ARGV[1], ARGV[2]) then
  return 0
end
for i = 4, #ARGV, 2 do
  if redis.call('ZSCORE', KEYS[2], ARGV[i]) or not is_as_read(ARGV[i], ARGV[i + 1]) then
    return 0
  end
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
for i = 4, #ARGV, 2 do
  redis.call('HDEL', KEYS[1], ARGV[i])
end
return 1
