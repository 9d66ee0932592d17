-- park_urls: move URLs of a snoozed or retired host out of its back queue into the partition's own inbox.
-- KEYS[1] hash    owner
-- KEYS[2] hash    state    hot, appended, appended_urls
-- KEYS[3] zset    ready    score = next fetch ms, member = host
-- KEYS[4] prefix  back:    + host: zset, score = order, member = "<seq>:..."
-- KEYS[5] stream  inbox    field b = batch of URLs
-- ARGV[1] node id    ARGV[2] epoch    ARGV[3] host    ARGV[4] batch: those URLs as they are to be merged
-- ARGV[5...] members of the back queue
-- Returns: 1 when they were moved, 0 when one of them is not in the back queue; -1 when another node owns the partition.
-- Guarantee: all of them are moved, or none: a URL is in the back queue or in the inbox. A host without URLs waiting is
--            not ready.
-- Lost reply: repeated, it changes nothing.
-- Cost: O(members * log members).
local owner = redis.call('HMGET', KEYS[1], 'node', 'epoch')
if owner[1] ~= ARGV[1] or owner[2] ~= ARGV[2] then
  return -1
end
local back = KEYS[4] .. ARGV[3]
for i = 5, #ARGV, 1 do
  if not redis.call('ZSCORE', back, ARGV[i]) then
    return 0
  end
end
for i = 5, #ARGV, 1 do
  redis.call('ZREM', back, ARGV[i])
end
redis.call('XADD', KEYS[5], '*', 'b', ARGV[4])
redis.call('HINCRBY', KEYS[2], 'appended', 1)
redis.call('HINCRBY', KEYS[2], 'appended_urls', #ARGV - 4)
redis.call('HINCRBY', KEYS[2], 'hot', 4 - #ARGV)
if redis.call('EXISTS', back) == 0 then
  redis.call('ZREM', KEYS[3], ARGV[3])
end
return 1
