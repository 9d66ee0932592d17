-- put_tallies: write what a node has counted since its begin.
-- KEYS[1] hash  tallies  node id -> its tallies
-- KEYS[2] zset  beats    score = last beat ms, member = node id
-- ARGV[1] node id    ARGV[2] its tallies    ARGV[3] 1: its first ones
-- Returns: how many fields there are now; 0 if earlier tallies of the node are there no more; -1 if no beat of it is
--          known. Then nothing is written.
-- Guarantee: tallies that were folded into the sum of the nodes that are gone are not written again.
-- Lost reply: repeated, it writes the same once more.
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
