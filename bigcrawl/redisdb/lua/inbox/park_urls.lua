-- park_urls: move URLs of a snoozed or retired host from its back queue to the partition's own inbox.
-- KEYS[1] hash    owner    node, epoch, generation
-- KEYS[2] hash    state    hot, appended_urls, moved = all URLs moved back to the inbox
-- KEYS[3] zset    ready    score = next fetch ms, member = host
-- KEYS[4] prefix  back:    + host: zset, score = order, member = "<seq>:..."
-- KEYS[5] stream  inbox    field b = batch of URLs
-- ARGV[1] node id    ARGV[2] epoch    ARGV[3] generation    ARGV[4] host
-- ARGV[5] batch: the same URLs, in the form to merge
-- ARGV[6...] members of the back queue
-- Returns: {id of their inbox entry, or '' if one of them is not in the back queue}; -1 if another node owns the
--          partition, -3 if it was reconciled since the call was made.
-- Guarantee: all of them are moved or none, so each URL is in the back queue or in the inbox. A host without waiting
--            URLs is not ready.
-- Lost reply: repeated, it changes nothing.
-- Late: refused, because the reconciliation after a lost reply raised the generation.
-- Cost: O(members * log members).
-- Uses: prelude/refusal
local refused = refusal(KEYS[1], ARGV[1], ARGV[2], ARGV[3])
if refused then
  return refused
end
local back = KEYS[4] .. ARGV[4]
for i = 6, #ARGV, 1 do
  if not redis.call('ZSCORE', back, ARGV[i]) then
    return {''}
  end
end
for i = 6, #ARGV, 1 do
  redis.call('ZREM', back, ARGV[i])
end
local id = redis.call('XADD', KEYS[5], '*', 'b', ARGV[5])
redis.call('HINCRBY', KEYS[2], 'appended_urls', #ARGV - 5)
redis.call('HINCRBY', KEYS[2], 'hot', 5 - #ARGV)
redis.call('HINCRBY', KEYS[2], 'moved', #ARGV - 5)
if redis.call('EXISTS', back) == 0 then
  redis.call('ZREM', KEYS[3], ARGV[4])
end
return {id}
