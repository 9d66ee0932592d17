-- release_partition: release a partition that this node has drained.
-- KEYS[1] hash  owner    node, epoch, generation, lease_ms, token
-- KEYS[2] hash  taken    seq -> ...
-- ARGV[1] node id    ARGV[2] epoch    ARGV[3] generation
-- Returns: 1 if it was released, 0 if it was not this node's, -1 if URLs are still taken, -3 if it was reconciled since
--          the call was made.
-- Guarantee: the epoch stays, so that the next one is higher.
-- Lost reply: repeated, it changes nothing.
-- Late: refused, because the reconciliation after a lost reply raised the generation.
-- Cost: O(1).
-- Uses: prelude/refusal
local refused = refusal(KEYS[1], ARGV[1], ARGV[2], ARGV[3])
if refused then
  return refused == -1 and 0 or refused -- this script's -1 means that URLs are still taken
end
if redis.call('HLEN', KEYS[2]) > 0 then
  return -1
end
redis.call('HDEL', KEYS[1], 'node', 'lease_ms', 'token')
return 1
