-- put_tallies: write a node's counts since its start.
-- KEYS[1] hash  tallies  node id -> its tallies
-- KEYS[2] zset  beats    score = last beat ms, member = node id
-- ARGV[1] node id    ARGV[2] its tallies    ARGV[3] 1: its first ones
-- Returns: the number of fields now; 0 if the node's earlier tallies are gone, -1 if it has no beat; then nothing is
--          written.
-- Guarantee: tallies that were folded into the sum of gone nodes are not written again.
-- Lost reply: repeated, it writes the same values again.
-- Late: older tallies may replace newer ones until the node writes again. Nothing is written for a node that is gone.
-- Cost: O(1).
if not redis.call('ZSCORE', KEYS[2], ARGV[1]) then
  return -1
end
if ARGV[3] == '0' and redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return 0
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return redis.call('HLEN', KEYS[1])
