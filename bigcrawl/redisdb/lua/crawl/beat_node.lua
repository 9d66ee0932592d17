-- beat_node: record a node's heartbeat and what it made, and return the live nodes and what all nodes made.
-- KEYS[1] hash  nodes    node id -> JSON report of the node
-- KEYS[2] zset  beats    score = last beat ms, member = node id
-- KEYS[3] hash  counts   items, warnings, errors -> sums of all nodes; each with ":node id" -> of this node, if it lives;
--                        silent:node id -> 1 if its silence is an event already
-- KEYS[4] zset  events   score = ms, member = ms \n kind \n node \n text
-- ARGV[1] now_ms (0: this server's clock)    ARGV[2] node id    ARGV[3] report    ARGV[4] lease ms
-- ARGV[5] 1: a heartbeat, 0: the node leaves
-- ARGV[6] 1: no heartbeat of this node was answered yet, so that all it made counts
-- ARGV[7...] items, warnings and errors of this node since its start; absent if another node says that it is dead
-- Returns: {now_ms, items, warnings, errors of all nodes, node id, report, ...} of the nodes whose last beat is not older
--          than the lease.
-- Guarantee: a node without a beat for ten leases is forgotten. A sum grows by what a node made since it was last summed,
--            so each item counts once. A sum that is damaged begins at 0 again, which is an event. A node that comes,
--            leaves, dies or is silent for a lease is one event.
-- Lost reply: repeated, it changes nothing more.
-- Late: now_ms is the time of sending, so no later beat is undone. A node that has left counts as alive for less than
--       a lease from then, and adds nothing to the sums.
-- Cost: O(nodes).
-- Uses: prelude/now_ms, prelude/ask_many, prelude/add_event, prelude/whole_number
local now = now_ms(ARGV[1])
local lease = tonumber(ARGV[4])
local made = {'items', 'warnings', 'errors'}
local function forget(node)
  redis.call('HDEL', KEYS[1], node)
  redis.call('HDEL', KEYS[3], 'items:' .. node, 'warnings:' .. node, 'errors:' .. node, 'silent:' .. node)
  return redis.call('ZREM', KEYS[2], node)
end
local fields = {'items:' .. ARGV[2], 'warnings:' .. ARGV[2], 'errors:' .. ARGV[2], 'silent:' .. ARGV[2]}
local before = ask_many('HMGET', KEYS[3], fields)
for n, sum in ipairs(redis.call('HMGET', KEYS[3], 'items', 'warnings', 'errors')) do
  local name = made[n]
  if sum and not whole_number(sum) then
    redis.call('HSET', KEYS[3], name, 0)
    add_event(KEYS[4], now, 'count_damaged', '', 'the sum of ' .. name .. ' was damaged in Redis, and begins at 0 again')
  end
end
for i = 7, #ARGV, 3 do
  for n, name in ipairs(made) do
    local count, known = tonumber(ARGV[i + n - 1]), whole_number(before[n])
    local last = known or ARGV[6] == '1' and 0 or count
    if count > last or not known then
      redis.call('HINCRBY', KEYS[3], name, count - last)
      redis.call('HSET', KEYS[3], fields[n], count)
    end
  end
end
if ARGV[5] == '1' then
  if redis.call('ZADD', KEYS[2], 'GT', now, ARGV[2]) == 1 then
    add_event(KEYS[4], now, 'node_came', ARGV[2], '')
  elseif before[4] then
    redis.call('HDEL', KEYS[3], 'silent:' .. ARGV[2])
    add_event(KEYS[4], now, 'node_came', ARGV[2], 'is heard again')
  end
  redis.call('HSET', KEYS[1], ARGV[2], ARGV[3])
elseif forget(ARGV[2]) == 1 and not before[4] then
  add_event(KEYS[4], now, ARGV[7] and 'node_left' or 'node_died', ARGV[2], '')
end
for _, node in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', string.format('(%.0f', now - lease))) do
  local beat = tonumber(redis.call('ZSCORE', KEYS[2], node))
  if redis.call('HSETNX', KEYS[3], 'silent:' .. node, 1) == 1 then
    add_event(KEYS[4], now, 'node_died', node, 'has stopped responding')
  end
  if beat <= now - 10 * lease then
    forget(node)
  end
end
local sums = redis.call('HMGET', KEYS[3], 'items', 'warnings', 'errors')
local reply = {now, tonumber(sums[1] or '0'), tonumber(sums[2] or '0'), tonumber(sums[3] or '0')}
for _, node in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], now - lease, '+inf')) do
  reply[#reply + 1] = node
  reply[#reply + 1] = redis.call('HGET', KEYS[1], node) or ''
end
return reply
