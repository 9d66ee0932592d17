-- look_orders: read what operators order about URLs, and the reports of all nodes.
-- KEYS[1] hash  blacklist   host, PLD, pattern or range -> 1; 0 removes an entry of the settings
-- KEYS[2] hash  rules       host, PLD or pattern -> JSON of its limits, set by hand
-- KEYS[3] hash  control     operators' orders
-- KEYS[4] hash  nodes       node id -> JSON report of the node
-- ARGV[1] field of control for discovery
-- Returns: {{field, value, ...} of the blacklist, {field, value, ...} of the rules, value of the field or '', {report, ...}}.
-- Guarantee: changes nothing. All values are of the same moment.
-- Lost reply: repeated, it changes nothing.
-- Late: it changes nothing.
-- Cost: O(blacklist + rules + nodes).
return {
  redis.call('HGETALL', KEYS[1]), redis.call('HGETALL', KEYS[2]), redis.call('HGET', KEYS[3], ARGV[1]) or '',
  redis.call('HVALS', KEYS[4]),
}
