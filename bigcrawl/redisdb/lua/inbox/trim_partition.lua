-- trim_partition: remove entries and batches that a durable manifest has made unnecessary, and publish the owner's
-- counts.
-- KEYS[1] hash    owner    node, epoch, generation
-- KEYS[2] hash    state      folded, manifest, chosen, waiting, seen, duplicates, rejected: of the owner's last commit;
--                            checkpoint: the last executed order for a durable point;
--                            trimmed: the last durable inbox id and batch number, or '' if the files started again;
--                            asked: the mark of the rules by which URLs are withheld
-- KEYS[3] stream  inbox
-- KEYS[4] hash    batches    number -> packed keys
-- ARGV[1] node id    ARGV[2] epoch    ARGV[3] generation    ARGV[4] durable inbox id
-- ARGV[5] durable batch number
-- ARGV[6...] field, value pairs for the state
-- Returns: the number of inbox entries removed; -1 if another node owns the partition, -3 if it was reconciled since
--          the call was made.
-- Guarantee: no entry above the given id, and no batch above the given number, is removed. The state has the
--            limits up to which they might be removed.
-- Lost reply: repeated, it changes nothing.
-- Late: refused, because the reconciliation after a lost reply raised the generation. Without one, counts may be old.
-- Cost: O(removed).
-- Uses: prelude/refusal, prelude/call_many
local refused = refusal(KEYS[1], ARGV[1], ARGV[2], ARGV[3])
if refused then
  return refused
end
local durable = tonumber(ARGV[5])
local past, counts = {}, {}
for _, number in ipairs(redis.call('HKEYS', KEYS[4])) do
  if tonumber(number) <= durable then
    past[#past + 1] = number
  end
end
for i = 6, #ARGV, 2 do
  counts[#counts + 1] = ARGV[i]
  counts[#counts + 1] = ARGV[i + 1]
end
if ARGV[4] ~= '0-0' then
  redis.call('HSET', KEYS[2], 'trimmed', ARGV[4] .. ' ' .. ARGV[5])
end
call_many('HDEL', KEYS[4], past)
call_many('HSET', KEYS[2], counts)
if ARGV[4] == '0-0' or redis.call('EXISTS', KEYS[3]) == 0 then
  return 0
end
local time_ms, counter = string.match(ARGV[4], '^(%d+)%-(%d+)$')
return redis.call('XTRIM', KEYS[3], 'MINID', time_ms .. '-' .. string.format('%.0f', tonumber(counter) + 1))
