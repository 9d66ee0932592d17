-- meet_crawls: announce that a node of a crawl is alive, and return whether other crawls on this server are.
-- KEYS[1] hash  crawls    crawl/node id -> end of its lease ms, 1 if it holds hosts else 0, its longest delay of a host
--                         or server ms, time of its announcement ms, crawl
-- ARGV[1] now_ms (0: this server's clock)    ARGV[2] node id    ARGV[3] crawl    ARGV[4] lease ms
-- ARGV[5] 1: it holds the hosts that it fetches, 0: it does not know of others    ARGV[6] longest delay ms
-- ARGV[7] 1: it is alive, 0: it leaves    ARGV[8] ms that its hosts still rest if it leaves
-- Returns: {1 if another crawl is alive, 1 if all nodes of others hold their hosts, their longest delay ms}.
-- Guarantee: a lone node counts as one that does not know of others. A crawl that comes later waits until the node
--            announces that it holds its hosts. A node that is gone counts as alive while its hosts rest: for its
--            longest delay after the end of its lease, or for the time given when it left.
-- Lost reply: repeated, it changes nothing more.
-- Late: a later announcement of the node stays in force.
-- Cost: O(nodes of all crawls).
-- Uses: prelude/now_ms
local now = now_ms(ARGV[1])
local me = ARGV[3] .. '/' .. ARGV[2]
local others, all_hold, longest_ms, announced_ms = 0, 1, 0, 0
local nodes = redis.call('HGETALL', KEYS[1])
for i = 1, #nodes, 2 do
  local until_ms, holds, delay_ms, at_ms, crawl = string.match(nodes[i + 1], '^(%d+) (%d) (%d+) (%d+) (.*)$')
  if nodes[i] == me then
    announced_ms = tonumber(at_ms)
  elseif tonumber(until_ms) + (holds == '1' and tonumber(delay_ms) or 0) < now then
    redis.call('HDEL', KEYS[1], nodes[i])
  elseif crawl ~= ARGV[3] then
    others = 1
    all_hold = math.min(all_hold, tonumber(holds))
    longest_ms = math.max(longest_ms, tonumber(delay_ms))
  end
end
if announced_ms <= now then
  local rest_ms = tonumber(ARGV[8])
  if ARGV[7] == '1' then
    local holds = others == 1 and ARGV[5] or '0'
    local entry = string.format('%.0f %s %s %.0f %s', now + tonumber(ARGV[4]), holds, ARGV[6], now, ARGV[3])
    redis.call('HSET', KEYS[1], me, entry)
  elseif rest_ms > 0 then
    redis.call('HSET', KEYS[1], me, string.format('%.0f 1 0 %.0f %s', now + rest_ms, now, ARGV[3]))
  else
    redis.call('HDEL', KEYS[1], me)
  end
end
return {others, all_hold, longest_ms}
