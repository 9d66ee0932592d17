-- tell_time: return the time of all crawls on this server, which runs evenly even if the server's clock is set.
-- KEYS[1] hash  clock    adjust = ms to add to this server's clock, told = last time returned, by = node that got it
-- ARGV[1] now_ms (0: this server's clock)    ARGV[2] estimate ms of the caller; 0 if it has none
-- ARGV[3] step_ms: a larger difference is not drift    ARGV[4] node id
-- ARGV[5] 1: correct the time after such a difference, 0: only report it
-- Returns: {time ms, ms by which this server's clock was set forward, or back if negative}.
-- Guarantee: the time is never earlier than the last one returned, except in a reply that only reports a difference.
--            A corrected time is the caller's estimate, unless the caller might have stood still: another node got
--            the time within the last five seconds, or any node got a later time. Then, and if the caller has no
--            estimate, the server's time counts.
-- Lost reply: repeated, it returns the time of that moment and changes nothing more.
-- Late: the estimate is that of the time of sending. If no other node got the time since, a correction sets the time
--       back by that delay, until the node's next question, about a second later.
-- Cost: O(1).
-- Uses: prelude/now_ms
local now = now_ms(ARGV[1])
local wall = now
local fresh_ms = 5000
local stored = redis.call('HMGET', KEYS[1], 'adjust', 'told', 'by')
local carried, told = wall + tonumber(stored[1] or '0'), tonumber(stored[2] or '0')
local estimate, step = tonumber(ARGV[2]), tonumber(ARGV[3])
if estimate == 0 then
  return {math.max(carried, told), 0}
end
redis.call('PERSIST', KEYS[1]) -- changes nothing, but lets later commands pass at maxmemory
now = carried
if math.abs(carried - estimate) > step then
  local age_ms = carried - told
  local is_fresh = stored[3] ~= ARGV[4] and age_ms >= 0 and age_ms < fresh_ms
  if is_fresh or ARGV[5] == '0' then
    return {carried, 0}
  end
  if estimate >= told - step then
    now = estimate
  end
end
now = math.max(now, told)
if now ~= carried then
  redis.call('HSET', KEYS[1], 'adjust', string.format('%.0f', now - wall))
end
redis.call('HSET', KEYS[1], 'told', string.format('%.0f', now), 'by', ARGV[4])
return {now, math.abs(carried - now) > step and carried - now or 0}
