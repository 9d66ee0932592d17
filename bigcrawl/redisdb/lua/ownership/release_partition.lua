-- release_partition: release a partition that this node has drained.
-- KEYS[1] hash  owner    node, epoch, generation, lease_ms, token
-- KEYS[2] hash  taken    seq -> ...
-- KEYS[3] hash  leases:  node -> its block lease, see renew_block_leases; absent on a cluster
-- ARGV[1] node id    ARGV[2] epoch    ARGV[3] generation
-- Returns: 1 if it was released, 0 if it was not this node's, -1 if URLs are still taken, -3 if it was reconciled since
--          the call was made.
-- Guarantee: the epoch stays, so that the next one is higher. The node's block lease no longer names the partition.
-- Lost reply: repeated, it changes nothing.
-- Late: refused, because the reconciliation after a lost reply raised the generation.
-- Cost: O(length of the block lease).
-- Uses: prelude/refusal, prelude/lease_end
local refused = refusal(KEYS[1], ARGV[1], ARGV[2], ARGV[3])
if refused then
  return refused == -1 and 0 or refused -- this script's -1 means that URLs are still taken
end
if redis.call('HLEN', KEYS[2]) > 0 then
  return -1
end
local _, others = lease_end(KEYS[1], {ARGV[1], ARGV[2]}, KEYS[3])
redis.call('HDEL', KEYS[1], 'node', 'lease_ms', 'token')
if others then
  redis.call('HSET', KEYS[3], ARGV[1], others)
end
return 1
