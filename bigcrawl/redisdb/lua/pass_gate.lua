-- pass_gate: grant the next start time on a server (an IP address) to whoever asks.
-- KEYS[1] string  gate    ms from which the next start is allowed; expires when past
-- ARGV[1] now_ms (0: this server's clock)    ARGV[2] gap between starts ms    ARGV[3] earliest start wanted ms
-- Returns: {now_ms, granted start ms}; the caller starts then, not earlier.
-- Guarantee: granted starts of one server are at least the gap apart, over all nodes and crawls.
-- Lost reply: a repeat wastes one gap.
-- Cost: O(1).
local now = tonumber(ARGV[1])
if now == 0 then
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
local start = math.max(now, tonumber(ARGV[3]), tonumber(redis.call('GET', KEYS[1]) or '0'))
local gap = tonumber(ARGV[2])
redis.call('SET', KEYS[1], string.format('%.0f', start + gap), 'PX', string.format('%.0f', start + gap - now + 1000))
return {now, start}
