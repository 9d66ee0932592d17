-- look_host: read what is known of a host.
-- KEYS[1] hash    owner      node, epoch, lease_ms
-- KEYS[2] zset    ready      score = next fetch ms, member = host
-- KEYS[3] hash    busy       host -> URLs taken
-- KEYS[4] prefix  back:      + host: zset, order -> URL
-- KEYS[5] prefix  host:      + host: hash of the host
-- KEYS[6] hash    leases:    node -> its block lease, see renew_block_leases; absent on a cluster
-- ARGV[1] now_ms (0: this server's clock)    ARGV[2] host    ARGV[3] most URLs listed
-- Returns: {now_ms, node that has a lease or '', URLs queued, URLs taken, next fetch ms in the heap or '', ms that the
--           record lives, {field, value, ...} of the record, {URL, ...} those that are next}.
-- Guarantee: changes nothing. All values are of the same moment.
-- Lost reply: repeated, it changes nothing.
-- Late: it changes nothing.
-- Cost: O(log hosts + fields of the record + URLs listed).
-- Uses: prelude/now_ms, prelude/lease_end
local now, host = now_ms(ARGV[1]), ARGV[2]
local owner = redis.call('HMGET', KEYS[1], 'node', 'epoch', 'lease_ms')
local is_live = lease_end(KEYS[1], owner, KEYS[6]) > now
local record, back = KEYS[5] .. host, KEYS[4] .. host
return {
  now, is_live and owner[1] or '', redis.call('ZCARD', back),
  tonumber(redis.call('HGET', KEYS[3], host) or 0) or 0, redis.call('ZSCORE', KEYS[2], host) or '',
  redis.call('PTTL', record), redis.call('HGETALL', record),
  redis.call('ZRANGE', back, 0, tonumber(ARGV[3]) - 1),
}
