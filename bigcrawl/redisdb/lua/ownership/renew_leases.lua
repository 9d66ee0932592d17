-- renew_leases: renew the leases of partitions that a node owns. They are its block lease from then on.
-- KEYS[1] hash  owner      node, epoch, lease_ms
-- KEYS[2] hash  leases:    node -> its block lease, see renew_block_leases; absent on a cluster
-- These two are repeated for each further partition of the block.
-- ARGV[1] now_ms (0: this server's clock)    ARGV[2] node id    ARGV[3] lease ms    ARGV[4] the
--         epoch of each partition, with blanks between them
-- Returns: {place of each partition that the node does not own in that epoch, ...}. Places begin with 1.
-- Guarantee: changes nothing except the leases of the owner that asks. No lease becomes shorter: a partition that leaves
--            the block lease keeps its end. A block lease that ended a day ago is removed.
-- Lost reply: repeated, it changes nothing more.
-- Late: now_ms is the time of sending. So a lease that was renewed since does not change, and that of a dead owner gets
--       less than one lease longer. An owner that has released the partition, or claimed it again, renews nothing.
-- Cost: 8 us for each partition.
-- Uses: prelude/now_ms
redis.call('PERSIST', KEYS[1]) -- changes nothing, but lets later commands pass at maxmemory
local now = now_ms(ARGV[1])
local until_ms, place, lost, owned = now + tonumber(ARGV[3]), 0, {}, {}
local text = string.format('%.0f', until_ms) -- once: a number becomes text with each call
for epoch in string.gmatch(ARGV[4], '%d+') do
  place = place + 1
  local key = KEYS[2 * place - 1]
  local owner = redis.call('HMGET', key, 'node', 'epoch', 'lease_ms')
  if owner[1] ~= ARGV[2] or owner[2] ~= epoch then
    lost[#lost + 1] = place
  else
    local name = string.match(key, ':p(%d+)}:owner$') .. ':' .. epoch .. ' '
    owned[#owned + 1], owned[name] = name, true
    if tonumber(owner[3] or '0') < until_ms then
      redis.call('HSET', key, 'lease_ms', text)
    end
  end
end
if not KEYS[2] then
  return lost
end
local ends_ms, before, leases = 0, '', redis.call('HGETALL', KEYS[2])
for i = 1, #leases, 2 do
  local its_ms = tonumber(string.match(leases[i + 1], '^%d+') or '0')
  if leases[i] == ARGV[2] then
    ends_ms, before = its_ms, leases[i + 1]
  elseif its_ms < now - 86400000 then
    redis.call('HDEL', KEYS[2], leases[i])
  end
end
if ends_ms < until_ms then
  for name, partition, epoch in string.gmatch(before, '((%d+):(%d+) )') do
    local key = string.gsub(KEYS[1], ':p%d+}:owner$', ':p' .. partition .. '}:owner')
    local owner = owned[name] and {} or redis.call('HMGET', key, 'node', 'epoch', 'lease_ms')
    if owner[1] == ARGV[2] and owner[2] == epoch and tonumber(owner[3] or '0') < ends_ms then
      redis.call('HSET', key, 'lease_ms', string.format('%.0f', ends_ms)) -- its block lease ends here
    end
  end
  redis.call('HSET', KEYS[2], ARGV[2], text .. ' ' .. table.concat(owned))
end
return lost
