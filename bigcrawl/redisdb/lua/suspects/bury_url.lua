-- bury_url: store the dead letter of a URL that kills or hangs nodes. Afterwards exchange_urls ends the URL itself.
-- KEYS[1] hash    owner      node, epoch, generation
-- KEYS[2] hash    state      dead = number of letters
-- KEYS[3] hash    dead       key of the URL -> letter
-- ARGV[1] node id    ARGV[2] epoch    ARGV[3] generation    ARGV[4] key of the URL    ARGV[5] letter
-- ARGV[6] most letters to keep
-- Returns: 1 if it is stored, 0 if there are too many; -1 if another node owns the partition, -3 if it was reconciled
--          since the call was made.
-- Guarantee: a URL has one letter, and dead is the number of letters.
-- Lost reply: repeated, it changes nothing.
-- Late: refused, because the reconciliation after a lost reply raised the generation.
-- Cost: O(1).
-- Uses: prelude/refusal
local refused = refusal(KEYS[1], ARGV[1], ARGV[2], ARGV[3])
if refused then
  return refused
end
if redis.call('HEXISTS', KEYS[3], ARGV[4]) == 0 and redis.call('HLEN', KEYS[3]) >= tonumber(ARGV[6]) then
  return 0
end
redis.call('HSET', KEYS[3], ARGV[4], ARGV[5])
redis.call('HSET', KEYS[2], 'dead', redis.call('HLEN', KEYS[3]))
return 1
