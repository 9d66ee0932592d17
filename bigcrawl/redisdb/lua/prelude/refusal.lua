-- refusal: why a call may not change a partition, or nil when it may.
-- key: of the hash owner    node, epoch, generation: the caller's; without a generation, any passes.
-- Returns: -1 when another node owns the partition, -3 when both sides were compared since the call was made.
local function refusal(key, node, epoch, generation)
  local owner = redis.call('HMGET', key, 'node', 'epoch', 'generation')
  if owner[1] ~= node or owner[2] ~= epoch then
    return -1
  end
  if generation and owner[3] ~= generation then
    return -3
  end
end
