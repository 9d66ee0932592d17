-- hold_host: let one crawl fetch a host that others on this server may fetch too.
-- KEYS[1] prefix  host:  + host: hash, by = the crawl that has it or had it last, ticket = of its latest hold, until =
--                        by when a fetch under way has ended, 0: none is; ended = when the last one did, free = from when
--                        on the next may start; next = the crawl that waits for it, delay = what that one keeps, ms
-- ARGV[1] now_ms (0: this server's clock)    ARGV[2] host    ARGV[3] crawl    ARGV[4] delay ms after a fetch of any crawl
-- ARGV[5] most ms: by then after now the fetch has ended    ARGV[6] ticket: when this was asked, ms
-- ARGV[7] 1: the fetch was begun before the crawl knew of others, and goes on whatever is said here
-- Returns: 0 when the host is held, else for how many ms to wait before asking again.
-- Guarantee: a host is one crawl's until that leaves it, or the fetch must have ended; after that it is nobody's until
--            the delay of the one that had it and that of the one that asks are over. Who was refused first has it next,
--            unless it does not come within a second of its time.
-- Lost reply: a repeat with the same ticket gives the same answer; one that is not repeated is undone by leave_host.
-- Late: a host that is free may be held for nobody, until the fetch would have ended.
-- Cost: O(1).
-- Uses: prelude/now_ms, prelude/keep_record
local now = now_ms(ARGV[1])
local turn_ms, ask_ms = 1000, 100
local record, crawl, delay = KEYS[1] .. ARGV[2], ARGV[3], tonumber(ARGV[4])
local said = redis.call('HMGET', record, 'by', 'ticket', 'until', 'ended', 'free', 'next', 'delay')
local by, ticket, until_ms = said[1], tonumber(said[2] or '0'), tonumber(said[3] or '0')
local ended, free, waits = tonumber(said[4] or '0'), tonumber(said[5] or '0'), said[6]
local is_under_way = until_ms > now
-- Who died with it left at the latest then.
ended = is_under_way and ended or math.max(ended, until_ms)
local turn = math.max(free, waits and ended + tonumber(said[7]) or 0) + turn_ms
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
