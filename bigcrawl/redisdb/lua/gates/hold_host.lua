-- hold_host: let one crawl at a time fetch a host that other crawls on this server may fetch too.
-- KEYS[1] prefix  host:  + host: hash, by = the crawl that holds or last held it, ticket = of its latest hold,
--                        until = end of the fetch under way, at the latest (0: none is), ended = end of the last one,
--                        free = when the next may start, all ms; next = the crawl that waits for the host, delay = its
--                        delay ms
-- ARGV[1] now_ms (0: this server's clock)    ARGV[2] host    ARGV[3] crawl    ARGV[4] delay ms, after any crawl's fetch
-- ARGV[5] most ms that the fetch takes    ARGV[6] ticket: time of this question ms
-- ARGV[7] 1: the fetch began before the crawl knew of others, and continues whatever this call returns
-- Returns: 0 if the crawl holds the host, else ms to wait before asking again.
-- Guarantee: a crawl holds a host until it leaves it, or until the fetch must have ended. Afterwards the delays of both
--            the last holder and the next one pass before another fetch. The crawl that was refused first is next,
--            if it asks within a second of its turn.
-- Lost reply: repeated with the same ticket, it gives the same answer; if it is not repeated, leave_host undoes it.
-- Late: a free host may be held without use, until the fetch would have ended.
-- Cost: O(1).
-- Uses: prelude/now_ms, prelude/keep_record
local now = now_ms(ARGV[1])
local turn_ms, ask_ms = 1000, 100
local record, crawl, delay = KEYS[1] .. ARGV[2], ARGV[3], tonumber(ARGV[4])
local stored = redis.call('HMGET', record, 'by', 'ticket', 'until', 'ended', 'free', 'next', 'delay')
local by, ticket, until_ms = stored[1], tonumber(stored[2] or '0'), tonumber(stored[3] or '0')
local ended, free, waits = tonumber(stored[4] or '0'), tonumber(stored[5] or '0'), stored[6]
local is_under_way = until_ms > now
-- By then a holder that died has left the host.
ended = is_under_way and ended or math.max(ended, until_ms)
local turn = math.max(free, waits and ended + tonumber(stored[7]) or 0) + turn_ms
local is_anothers_turn = waits and waits ~= crawl and (is_under_way or now < turn)
if ARGV[7] == '1' and is_under_way and by ~= crawl then
  return 0
end
local wait_ms
if ARGV[7] == '1' or (is_under_way and by == crawl and (not is_anothers_turn or ticket == tonumber(ARGV[6]))) then
  wait_ms = 0
elseif is_under_way then
  wait_ms = math.max(delay, ask_ms)
else
  wait_ms = math.max(0, math.max(free, ended + delay, is_anothers_turn and turn or 0) - now)
end
if wait_ms == 0 then
  until_ms = math.max(until_ms, now + tonumber(ARGV[5]))
  ticket = by == crawl and math.max(ticket, tonumber(ARGV[6])) or ARGV[6]
  redis.call('HSET', record, 'by', crawl, 'ticket', ticket, 'until', until_ms, 'ended', ended)
  if waits and not is_anothers_turn then
    redis.call('HDEL', record, 'next', 'delay')
  end
elseif not is_anothers_turn then
  redis.call('HSET', record, 'next', crawl, 'delay', delay)
end
local kept_ms = math.max(until_ms, free, ended + delay) + turn_ms - now
keep_record(record, kept_ms)
return wait_ms
