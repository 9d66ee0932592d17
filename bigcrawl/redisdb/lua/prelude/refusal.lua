-- refusal: the reason why a call may not change a partition; nil if it may.
-- key: of the hash owner    node, epoch, generation: the caller's; without a generation, any is accepted.
-- Returns: -1 if another node owns the partition, -3 if it was reconciled since the call was made.
local function refusal(key, node, epoch, generation)
  local owner = redis.call('HMGET', key, 'node', 'epoch', 'generation')
  if owner[1] ~= node or owner[2] ~= epoch then
    return -1
  end
  if generation and owner[3] ~= generation then
    return -3
  end
end
