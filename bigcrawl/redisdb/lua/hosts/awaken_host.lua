-- awaken_host: forget a host's failures, at the operator's request.
-- KEYS[1] hash    state    snoozes: raised, so that the owner looks; waiting, withheld
-- KEYS[2] zset    ready    score = next fetch ms, member = host
-- KEYS[3] prefix  host:    + host: hash, next = next allowed fetch ms; failures, why, failed; lent
-- KEYS[4] zset    snoozed  score = next fetch ms after a long back-off, 1e15 more if retired; member = host
-- ARGV[1] now_ms (0: this server's clock)    ARGV[2] host
-- Returns: 1 if the host had failed, else 0.
-- Guarantee: a host that had failed is due a minute after its last failure, usually at once, but not while it is lent.
--            Its next failure counts as the first. A host without failures does not change. Withheld URLs count as
--            waiting until the owner has looked, so that the crawl does not end meanwhile.
-- Lost reply: repeated, it changes nothing.
-- Late: failures since the call was sent are forgotten too.
-- Cost: O(log hosts).
-- Uses: prelude/now_ms
local now = now_ms(ARGV[1])
local record = KEYS[3] .. ARGV[2]
local stored = redis.call('HMGET', record, 'failed', 'lent')
local snoozed = redis.call('ZREM', KEYS[4], ARGV[2])
if redis.call('HDEL', record, 'failures', 'why', 'failed') == 0 and snoozed == 0 then
  return 0
end
local lent_ms = string.match(stored[2] or '', '^%d+\n(%d+)\n') or '0'
local next_ms = math.max(now, tonumber(stored[1] or '0') + 60000, tonumber(lent_ms))
redis.call('HSET', record, 'next', next_ms)
redis.call('PEXPIRE', record, 86400000)
redis.call('ZADD', KEYS[2], 'XX', next_ms, ARGV[2])
redis.call('HINCRBY', KEYS[1], 'snoozes', 1)
local withheld = tonumber(redis.call('HGET', KEYS[1], 'withheld') or '0')
if withheld > 0 then
  redis.call('HINCRBY', KEYS[1], 'waiting', withheld)
  redis.call('HINCRBY', KEYS[1], 'withheld', -withheld)
end
return 1
