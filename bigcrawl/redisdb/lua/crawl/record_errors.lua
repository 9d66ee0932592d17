-- record_errors: count failed fetches by reason and PLD, and keep an example of each.
-- KEYS[1] zset    errors    score = failed fetches, member = reason \n PLD
-- KEYS[2] hash    examples  reason \n PLD -> ms \n URL of the last one
-- ARGV[1] now_ms (0: this server's clock)    ARGV[2] most members that are kept
-- ARGV[3...] member, fetches, URL of the last of each row
-- Returns: 1.
-- Guarantee: at most ARGV[2] members are kept, those with the most fetches.
-- Lost reply: a repeat counts again, so counts may be too high.
-- Late: the counts are added; the example might replace a later one.
-- Cost: O(members sent * log members kept).
-- Uses: prelude/now_ms
local now = now_ms(ARGV[1])
for i = 3, #ARGV, 3 do
  redis.call('ZADD', KEYS[1], 'INCR', ARGV[i + 1], ARGV[i])
  redis.call('HSET', KEYS[2], ARGV[i], string.format('%.0f\n', now) .. ARGV[i + 2])
end
local over = redis.call('ZCARD', KEYS[1]) - tonumber(ARGV[2])
if over > 0 then
  local gone = redis.call('ZPOPMIN', KEYS[1], over)
  for n = 1, #gone, 2 do
    redis.call('HDEL', KEYS[2], gone[n])
  end
end
return 1
