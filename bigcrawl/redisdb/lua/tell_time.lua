-- tell_time: the time of all crawls on this server, which goes on evenly when the server's clock is set.
-- KEYS[1] hash  clock    adjust = ms to add to this server's clock, told = when it was last told, by = to whom
-- ARGV[1] now_ms (0: this server's clock)    ARGV[2] estimate ms of the caller; 0: it has none
-- ARGV[3] step_ms: a larger difference is no drift    ARGV[4] node id
-- ARGV[5] 1 to correct the time after such a difference, 0 to leave that to another question
-- Returns: {time ms, ms by which this server's clock turned out to have been set forward, or back if negative}.
-- Guarantee: the time is never earlier than it was last told, but to a caller who leaves the correction to another
--            question. Corrected, it is the caller's estimate, unless that is the one that stood still: another node
--            was told of the time within the last five seconds, or anybody of a later one; or the caller has none.
-- Lost reply: repeated, it gives the time then and changes nothing more.
-- Late: the estimate is that of the sending; where no other node was told since, a correction sets the time back by how
--       late it is, until the node's next question, about a second.
-- Cost: O(1).
-- Uses: prelude/now_ms
local now = now_ms(ARGV[1])
local wall = now
local fresh_ms = 5000
local said = redis.call('HMGET', KEYS[1], 'adjust', 'told', 'by')
local carried, told = wall + tonumber(said[1] or '0'), tonumber(said[2] or '0')
local estimate, step = tonumber(ARGV[2]), tonumber(ARGV[3])
if estimate == 0 then
  return {math.max(carried, told), 0}
end
redis.call('PERSIST', KEYS[1]) -- changes nothing, but lets what follows pass at maxmemory
now = carried
if math.abs(carried - estimate) > step then
  local age_ms = carried - told
  local is_fresh = said[3] ~= ARGV[4] and age_ms >= 0 and age_ms < fresh_ms
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
