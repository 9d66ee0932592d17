-- beat_node: record a node's heartbeat, and return the live nodes.
-- KEYS[1] hash  nodes    node id -> JSON report of the node
-- KEYS[2] zset  beats    score = last beat ms, member = node id
-- ARGV[1] now_ms (0: this server's clock)    ARGV[2] node id    ARGV[3] report    ARGV[4] lease ms
-- ARGV[5] 1: a heartbeat, 0: the node leaves
-- Returns: {now_ms, node id, report, ...} of the nodes whose last beat is not older than the lease.
-- Guarantee: a node without a beat for ten leases is forgotten.
-- Lost reply: repeated, it changes nothing more.
-- Late: now_ms is the time of sending, so no later beat is undone. A node that has left counts as alive for less than
--       a lease from then.
-- Cost: O(nodes).
-- Uses: prelude/now_ms
local now = now_ms(ARGV[1])
local lease = tonumber(ARGV[4])
if ARGV[5] == '1' then
  redis.call('ZADD', KEYS[2], 'GT', now, ARGV[2])
  redis.call('HSET', KEYS[1], ARGV[2], ARGV[3])
else
  redis.call('ZREM', KEYS[2], ARGV[2])
  redis.call('HDEL', KEYS[1], ARGV[2])
end
for _, node in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now - 10 * lease)) do
  redis.call('ZREM', KEYS[2], node)
  redis.call('HDEL', KEYS[1], node)
end
local reply = {now}
for _, node in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], now - lease, '+inf')) do
  reply[#reply + 1] = node
  reply[#reply + 1] = redis.call('HGET', KEYS[1], node) or ''
end
return reply
