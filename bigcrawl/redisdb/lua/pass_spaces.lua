-- pass_spaces: grant the next start that keeps all of some spaces: that of a pay-level domain, that of a user's group.
-- KEYS[1] prefix  space:    + name: string, ms from which the next start in it is allowed; expires when past
-- ARGV[1] now_ms (0: this server's clock)    ARGV[2] ahead ms: no start sooner than so long from now
-- ARGV[3] granted ms: the start that the same spaces gave the caller before, and that it gives up; 0 for none
-- ARGV[4...] per space: name, gap between starts ms
-- Returns: {now_ms, granted start ms}; the caller starts then, not earlier.
-- Guarantee: granted starts in one space are at least its gap apart, over all nodes; one that is given up is free again
--            if nobody was granted a later one.
-- Lost reply: a repeat wastes one gap.
-- Cost: O(spaces).
local now = tonumber(ARGV[1])
if now == 0 then
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
local start, before = now + math.max(0, tonumber(ARGV[2])), tonumber(ARGV[3])
for i = 4, #ARGV, 2 do
  local next_ms = tonumber(redis.call('GET', KEYS[1] .. ARGV[i]) or '0')
  if before == 0 or next_ms ~= before + tonumber(ARGV[i + 1]) then
    start = math.max(start, next_ms)
  end
end
for i = 4, #ARGV, 2 do
  local next_ms = start + tonumber(ARGV[i + 1])
  redis.call('SET', KEYS[1] .. ARGV[i], string.format('%.0f', next_ms), 'PX', string.format('%.0f', next_ms - now + 1000))
end
return {now, start}
