-- look_pld: read the limits of a crawl, the in-degrees of its PLDs, and what failed of one PLD.
-- KEYS[1] hash  rules       host, PLD or pattern -> JSON of its limits, set by hand
-- KEYS[2] hash  in_degrees  partition -> distribution of the in-degrees of its PLDs
-- KEYS[3] zset  errors      score = failed fetches, member = reason \n PLD
-- KEYS[4] hash  examples    reason \n PLD -> ms \n URL of the last failed fetch
-- ARGV[1] PLD
-- Returns: {{field, value, ...} of the rules, {distribution, ...}, {reason \n PLD, fetches, ...}, {example or '', ...}}.
-- Guarantee: changes nothing.
-- Lost reply: repeated, it changes nothing.
-- Late: it changes nothing.
-- Cost: O(rules + partitions + failures kept).
local failed, examples, rows = {}, {}, redis.call('ZRANGE', KEYS[3], 0, -1, 'REV', 'WITHSCORES')
for i = 1, #rows, 2 do
  if string.match(rows[i], '\n(.*)$') == ARGV[1] then
    failed[#failed + 1] = rows[i]
    failed[#failed + 1] = rows[i + 1]
    examples[#examples + 1] = redis.call('HGET', KEYS[4], rows[i]) or ''
  end
end
return {redis.call('HGETALL', KEYS[1]), redis.call('HVALS', KEYS[2]), failed, examples}
