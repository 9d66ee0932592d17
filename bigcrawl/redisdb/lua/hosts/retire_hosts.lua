-- retire_hosts: retire the snoozed hosts of a partition that have failed too often.
-- KEYS[1] hash    owner    node, epoch, generation
-- KEYS[2] hash    state    snoozes: raised, so that the owner looks
-- KEYS[3] zset    ready    score = next fetch ms, member = host
-- KEYS[4] prefix  host:    + host: hash, next = next allowed fetch ms; failures = in a row
-- KEYS[5] zset    snoozed  score = next fetch ms after a long back-off, 1e15 more if retired; member = host
-- ARGV[1] now_ms (0: this server's clock)    ARGV[2] node id    ARGV[3] epoch    ARGV[4] generation
-- ARGV[5] failures that retire a host
-- Returns: the number of hosts retired; -1 if another node owns the partition, -3 if it was reconciled since the call
--          was made.
-- Guarantee: a retired host is never due, and its record stays. If one of its URLs is being fetched, an answer brings
--            the host back.
-- Lost reply: repeated, it changes nothing more.
-- Late: refused, because the reconciliation after a lost reply raised the generation.
-- Cost: O(hosts snoozed), at most 2048.
-- Uses: prelude/now_ms, prelude/refusal
local refused = refusal(KEYS[1], ARGV[2], ARGV[3], ARGV[4])
if refused then
  return refused
end
local never_ms = 1e15
local now = now_ms(ARGV[1])
local retired = 0
for _, host in ipairs(redis.call('ZRANGEBYSCORE', KEYS[5], '-inf', '(' .. string.format('%.0f', never_ms))) do
  local failures = tonumber(redis.call('HGET', KEYS[4] .. host, 'failures') or '0')
  if failures >= tonumber(ARGV[5]) then
    redis.call('HSET', KEYS[4] .. host, 'next', now + never_ms)
    redis.call('PEXPIRE', KEYS[4] .. host, 2 * never_ms)
    redis.call('ZADD', KEYS[3], 'XX', now + never_ms, host)
    redis.call('ZADD', KEYS[5], now + never_ms, host)
    retired = retired + 1
  end
end
if retired > 0 then
  redis.call('HINCRBY', KEYS[2], 'snoozes', retired)
end
return retired
