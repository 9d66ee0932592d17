-- look_partition: read the state of a partition. If its owner asks, also renew the lease.
-- KEYS[1] hash    owner      node, epoch, lease_ms, token
-- KEYS[2] hash    state
-- KEYS[3] zset    ready      score = next fetch ms, member = host
-- KEYS[4] hash    busy       host -> URLs taken
-- KEYS[5] hash    taken
-- KEYS[6] stream  inbox
-- KEYS[7] zset    snoozed    score = next fetch ms after a long back-off, 1e15 more if retired; member = host
-- ARGV[1] now_ms (0: this server's clock)    ARGV[2] node id; '' to renew nothing    ARGV[3] epoch    ARGV[4] lease ms
-- Returns: {now_ms, 1 if ARGV[2] owns it, owner's node id, epoch, lease left ms, hosts due, hosts not yet due,
--           hosts busy, next due ms or -1, URLs taken, last inbox id, {state fields and values}, hosts snoozed, hosts
--           retired}.
-- Guarantee: changes nothing except the lease of the owner that asks. That lease never becomes shorter.
-- Lost reply: repeated, it changes nothing more.
-- Late: now_ms is the time of sending. So a lease that was renewed since does not change, and that of a dead owner gets
--       less than one lease longer. An owner that has released the partition, or claimed it again, renews nothing.
-- Cost: O(log hosts + fields of state).
-- Uses: prelude/now_ms, prelude/last_entry_id
local now = now_ms(ARGV[1])
local owner = redis.call('HMGET', KEYS[1], 'node', 'epoch', 'lease_ms')
local is_owner = ARGV[2] ~= '' and owner[1] == ARGV[2] and owner[2] == ARGV[3]
local lease_ms = tonumber(owner[3] or '0')
local due = redis.call('ZCOUNT', KEYS[3], '-inf', string.format('(%.0f', now + 1)) -- scores have fractions
local head = redis.call('ZRANGE', KEYS[3], 0, 0, 'WITHSCORES')
local inbox_id = last_entry_id(KEYS[6])
local reply = {
  now, is_owner and 1 or 0, owner[1] or '', tonumber(owner[2] or '0'), lease_ms - now, due,
  redis.call('ZCARD', KEYS[3]) - due, redis.call('HLEN', KEYS[4]), head[2] and math.floor(tonumber(head[2])) or -1,
  redis.call('HLEN', KEYS[5]), inbox_id, redis.call('HGETALL', KEYS[2]), redis.call('ZCOUNT', KEYS[7], now, '(1e15'),
  redis.call('ZCOUNT', KEYS[7], '1e15', '+inf'),
}
if is_owner then
  redis.call('PERSIST', KEYS[1]) -- changes nothing, but lets what follows pass at maxmemory
  redis.call('HSET', KEYS[1], 'lease_ms', math.max(lease_ms, now + tonumber(ARGV[4])))
end
return reply
