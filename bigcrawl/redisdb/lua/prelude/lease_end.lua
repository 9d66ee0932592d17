-- lease_end: when the lease of a partition ends, ms: its own, or its owner's block lease, whichever is later.
-- owner_key: of the hash owner    owner: {node, epoch, lease_ms, ...} of it    leases_key: of the block, nil on a cluster
-- Returns: the end, then that block lease without the partition, or nil if it does not have it.
local function lease_end(owner_key, owner, leases_key)
  local own_ms = tonumber(owner[3] or '0')
  local lease = owner[1] and leases_key and redis.call('HGET', leases_key, owner[1])
  if not lease then
    return own_ms
  end
  local entry = ' ' .. string.match(owner_key, ':p(%d+)}:owner$') .. ':' .. owner[2] .. ' '
  local from, upto = string.find(lease, entry, 1, true)
  if not from then
    return own_ms
  end
  local others = string.sub(lease, 1, from) .. string.sub(lease, upto + 1)
  return math.max(own_ms, tonumber(string.match(lease, '^%d+') or '0')), others
end
