-- look_partition: read the state of a partition. If its owner asks for that, also renew the lease.
-- KEYS[1] hash    owner      node, epoch, lease_ms, token
-- KEYS[2] hash    state
-- KEYS[3] zset    ready      score = next fetch ms, member = host
-- KEYS[4] hash    busy       host -> URLs taken
-- KEYS[5] hash    taken
-- KEYS[6] stream  inbox
-- KEYS[7] zset    snoozed    score = next fetch ms after a long back-off, 1e15 more if retired; member = host
-- KEYS[8] hash    leases:    node -> its block lease, see renew_block_leases; absent on a cluster
-- ARGV[1] now_ms (0: this server's clock)    ARGV[2] node id; '' for nobody's    ARGV[3] epoch
-- ARGV[4] lease ms; 0 to renew nothing
-- ARGV[5] 0: read all. 1: only the values that an owner needs every second: the numbers of hosts and of taken URLs
--         are 0, the last inbox id is 0-0 if the inbox is empty, and the state has only the fields folded,
--         appended_urls, folded_urls and snoozes.
-- Returns: {now_ms, 1 if ARGV[2] owns it, owner's node id, epoch, lease left ms, hosts due, hosts not yet due,
--           hosts busy, next due ms or -1, URLs taken, last inbox id, {state fields and values}, hosts snoozed, hosts
--           retired}.
-- Guarantee: changes nothing except the lease of the owner that asks. That lease never becomes shorter.
-- Lost reply: repeated, it changes nothing more.
-- Late: now_ms is the time of sending. So a lease that was renewed since does not change, and that of a dead owner gets
--       less than one lease longer. An owner that has released the partition, or claimed it again, renews nothing.
-- Cost: O(log hosts + fields of state).
-- Uses: prelude/now_ms, prelude/last_entry_id, prelude/ask_many, prelude/lease_end
local now = now_ms(ARGV[1])
local owner = redis.call('HMGET', KEYS[1], 'node', 'epoch', 'lease_ms')
local is_owner = ARGV[2] ~= '' and owner[1] == ARGV[2] and owner[2] == ARGV[3]
local lease_ms = is_owner and tonumber(owner[3] or '0') or lease_end(KEYS[1], owner, KEYS[8])
local head = redis.call('ZRANGE', KEYS[3], 0, 0, 'WITHSCORES')
local due, waiting, busy, taken, snoozed, retired, state, inbox_id = 0, 0, 0, 0, 0, 0, {}, '0-0'
if ARGV[5] == '1' then
  local fields = {'folded', 'appended_urls', 'folded_urls', 'snoozes'}
  for i, value in ipairs(ask_many('HMGET', KEYS[2], fields)) do
    if value then
      state[#state + 1] = fields[i]
      state[#state + 1] = value
    end
  end
  local newest = redis.call('XREVRANGE', KEYS[6], '+', '-', 'COUNT', 1)[1] -- cheaper than XINFO
  inbox_id = newest and newest[1] or inbox_id
else
  due = redis.call('ZCOUNT', KEYS[3], '-inf', string.format('(%.0f', now + 1)) -- scores have fractions
  waiting = redis.call('ZCARD', KEYS[3]) - due
  busy, taken = redis.call('HLEN', KEYS[4]), redis.call('HLEN', KEYS[5])
  snoozed, retired = redis.call('ZCOUNT', KEYS[7], now, '(1e15'), redis.call('ZCOUNT', KEYS[7], '1e15', '+inf')
  state = redis.call('HGETALL', KEYS[2])
  inbox_id = last_entry_id(KEYS[6])
end
if is_owner and ARGV[4] ~= '0' then
  redis.call('PERSIST', KEYS[1]) -- changes nothing, but lets later commands pass at maxmemory
  redis.call('HSET', KEYS[1], 'lease_ms', math.max(lease_ms, now + tonumber(ARGV[4])))
end
return {
  now, is_owner and 1 or 0, owner[1] or '', tonumber(owner[2] or '0'), lease_ms - now, due, waiting, busy,
  head[2] and math.floor(tonumber(head[2])) or -1, taken, inbox_id, state, snoozed, retired,
}
