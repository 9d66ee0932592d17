-- put_recent: write what a node did last.
-- KEYS[1] hash  recent   node id -> JSON of its last fetches, items and lines of the log
-- KEYS[2] hash  nodes    node id -> JSON report of the node
-- ARGV[1] node id    ARGV[2] JSON of its recent work    ARGV[3] most nodes that are gone and kept
-- Returns: 1.
-- Guarantee: no more nodes are kept than there are, and ARGV[3].
-- Lost reply: repeated, it writes the same again.
-- Late: older texts may replace newer ones until the node writes again.
-- Cost: O(nodes kept).
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
local most = tonumber(ARGV[3])
if redis.call('HLEN', KEYS[1]) > most + redis.call('HLEN', KEYS[2]) then
  for _, node in ipairs(redis.call('HKEYS', KEYS[1])) do
    if node ~= ARGV[1] and redis.call('HEXISTS', KEYS[2], node) == 0 then
      redis.call('HDEL', KEYS[1], node)
      if redis.call('HLEN', KEYS[1]) <= most then
        break
      end
    end
  end
end
return 1
