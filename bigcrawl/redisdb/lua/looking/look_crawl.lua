-- look_crawl: read a crawl's record, the reports of its nodes, what they made, and its operator's changes.
-- KEYS[1] hash  crawl      record, announcement of the end, claims of start requests
-- KEYS[2] hash  nodes      node id -> JSON report of the node
-- KEYS[3] zset  beats      score = last beat ms, member = node id
-- KEYS[4] hash  control    the operator's changes
-- KEYS[5] hash  counts     items, warnings, errors -> sums of all nodes
-- ARGV[1] now_ms (0: this server's clock)    ARGV[2] lease ms
-- Returns: {now_ms, {node id, report, ...} of the nodes whose last beat is not older than the lease, {field, value,
--          ...} of the record without the long list of suffixes, {field, value, ...} of control, {items, warnings,
--          errors}}.
-- Guarantee: changes nothing. All values are of the same moment.
-- Lost reply: repeated, it changes nothing.
-- Late: it changes nothing.
-- Cost: O(nodes + fields).
-- Uses: prelude/now_ms, prelude/whole_number
local now = now_ms(ARGV[1])
local reports, record = {}, {}
for _, node in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], now - tonumber(ARGV[2]), '+inf')) do
  reports[#reports + 1] = node
  reports[#reports + 1] = redis.call('HGET', KEYS[2], node) or ''
end
for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
  if field ~= 'suffixes' then
    record[#record + 1] = field
    record[#record + 1] = redis.call('HGET', KEYS[1], field)
  end
end
local sums = redis.call('HMGET', KEYS[5], 'items', 'warnings', 'errors')
for i = 1, 3 do
  sums[i] = whole_number(sums[i]) or 0
end
return {now, reports, record, redis.call('HGETALL', KEYS[4]), sums}
