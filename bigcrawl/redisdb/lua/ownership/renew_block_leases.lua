-- renew_block_leases: renew a node's block leases, each of which stands for the leases of its partitions in a block.
-- KEYS[1] hash  leases:    node -> end of its block lease ms, a blank, and "partition:epoch " for each of its partitions
-- This key is repeated for each further block.
-- ARGV[1] now_ms (0: this server's clock)    ARGV[2] node id    ARGV[3] lease ms
-- ARGV[4...] for each block: "partition:epoch " for each of its partitions that the node believes to own
-- Returns: {place of each block whose lease has other partitions, and is not renewed, ...}. Places begin with 1.
-- Guarantee: changes nothing except the ends of the leases. No lease becomes shorter. claim_partition takes the partition
--            out of the block lease of its last owner. So an owner that lost one renews no lease of that block here.
-- Lost reply: repeated, it changes nothing more.
-- Late: now_ms is the time of sending. So a lease that was renewed since does not change, and that of a dead owner gets
--       less than one lease longer.
-- Cost: O(length of the leases).
-- Uses: prelude/now_ms
redis.call('PERSIST', KEYS[1]) -- changes nothing, but lets later commands pass at maxmemory
local until_ms, others = now_ms(ARGV[1]) + tonumber(ARGV[3]), {}
for i = 4, #ARGV, 1 do
  local key = KEYS[i - 3]
  local ends_ms, partitions = string.match(redis.call('HGET', key, ARGV[2]) or '', '^(%d+) (.*)$')
  if partitions ~= ARGV[i] then
    others[#others + 1] = i - 3
  elseif tonumber(ends_ms) < until_ms then
    redis.call('HSET', key, ARGV[2], string.format('%.0f %s', until_ms, partitions))
  end
end
return others
