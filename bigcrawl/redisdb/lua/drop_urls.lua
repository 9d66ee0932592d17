-- drop_urls: end URLs of a host's back queue that need not be taken for it, because robots.txt forbids them.
-- KEYS[1] hash    owner
-- KEYS[2] hash    state   hot, ended, and the counter named in ARGV
-- KEYS[3] zset    ready   score = next fetch ms, member = host
-- KEYS[4] prefix  back:   + host: zset, score = order, member = "<seq>:..."
-- KEYS[5] stream  inbox   field o = outcomes
-- ARGV[1] node id    ARGV[2] epoch    ARGV[3] host    ARGV[4] counter to raise by each
-- ARGV[5...] per URL: member, its outcome
-- Returns: URLs dropped; -1 when another node owns the partition.
-- Guarantee: a URL that is dropped was in its back queue, neither taken nor ended, and its outcome is in the inbox;
--            one that was not there any more is passed over. The host's next time stays as it is.
-- Lost reply: repeated, it passes over what is gone.
-- Cost: O(URLs * log URLs of the host).
local owner = redis.call('HMGET', KEYS[1], 'node', 'epoch')
if owner[1] ~= ARGV[1] or owner[2] ~= ARGV[2] then
  return -1
end
local back = KEYS[4] .. ARGV[3]
local outcomes = {}
for i = 5, #ARGV, 2 do
  if redis.call('ZREM', back, ARGV[i]) == 1 then
    outcomes[#outcomes + 1] = ARGV[i + 1]
  end
end
if #outcomes == 0 then
  return 0
end
redis.call('XADD', KEYS[5], '*', 'o', table.concat(outcomes))
redis.call('HINCRBY', KEYS[2], 'hot', -#outcomes)
redis.call('HINCRBY', KEYS[2], 'ended', #outcomes)
redis.call('HINCRBY', KEYS[2], ARGV[4], #outcomes)
if redis.call('EXISTS', back) == 0 then
  redis.call('ZREM', KEYS[3], ARGV[3])
end
return #outcomes
