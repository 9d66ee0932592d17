-- renew_leases: renew the leases of partitions that a node owns.
-- KEYS[1] hash  owner    node, epoch, lease_ms
-- This key is repeated for each further partition.
-- ARGV[1] now_ms (0: this server's clock)    ARGV[2] node id    ARGV[3] lease ms    ARGV[4] the
--         epoch of each partition, with blanks between them
-- Returns: {place of each partition that the node does not own in that epoch, ...}. Places begin with 1.
-- Guarantee: changes nothing except the leases of the owner that asks. No lease becomes shorter.
-- Lost reply: repeated, it changes nothing more.
-- Late: now_ms is the time of sending. So a lease that was renewed since does not change, and that of a dead owner gets
--       less than one lease longer. An owner that has released the partition, or claimed it again, renews nothing.
-- Cost: 2 us for each partition.
-- Uses: prelude/now_ms
redis.call('PERSIST', KEYS[1]) -- changes nothing, but lets later commands pass at maxmemory
local until_ms, lost, place = now_ms(ARGV[1]) + tonumber(ARGV[3]), {}, 0
local text = string.format('%.0f', until_ms) -- once: a number becomes text with each call
for epoch in string.gmatch(ARGV[4], '%d+') do
  place = place + 1
  local owner = redis.call('HMGET', KEYS[place], 'node', 'epoch', 'lease_ms')
  if owner[1] ~= ARGV[2] or owner[2] ~= epoch then
    lost[#lost + 1] = place
  elseif tonumber(owner[3] or '0') < until_ms then
    redis.call('HSET', KEYS[place], 'lease_ms', text)
  end
end
return lost
