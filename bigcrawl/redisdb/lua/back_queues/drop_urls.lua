-- drop_urls: end forbidden URLs, or those of a host without an address, in its back queue, without taking them.
-- KEYS[1] hash    owner   node, epoch, generation
-- KEYS[2] hash    state   hot, ended, and the counter named in ARGV
-- KEYS[3] zset    ready   score = next fetch ms, member = host
-- KEYS[4] prefix  back:   + host: zset, score = order, member = "<seq>:..."
-- KEYS[5] stream  inbox   field o = outcomes
-- ARGV[1] node id    ARGV[2] epoch    ARGV[3] generation    ARGV[4] host    ARGV[5] counter to raise for each URL
-- ARGV[6...] per URL: member, its outcome
-- Returns: the number of URLs dropped; -1 if another node owns the partition,
--          -3 if it was reconciled since the call was made.
-- Guarantee: a dropped URL was in its back queue, neither taken nor ended, and its outcome is in the inbox. A URL that
--            is no longer there is skipped. The host's next fetch time does not change.
-- Lost reply: repeated, it skips the URLs that are gone.
-- Late: refused, because the reconciliation after a lost reply raised the generation.
-- Cost: O(URLs * log URLs of the host).
-- Uses: prelude/refusal
local refused = refusal(KEYS[1], ARGV[1], ARGV[2], ARGV[3])
if refused then
  return refused
end
local back = KEYS[4] .. ARGV[4]
local outcomes = {}
for i = 6, #ARGV, 2 do
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
redis.call('HINCRBY', KEYS[2], ARGV[5], #outcomes)
if redis.call('EXISTS', back) == 0 then
  redis.call('ZREM', KEYS[3], ARGV[4])
end
return #outcomes
