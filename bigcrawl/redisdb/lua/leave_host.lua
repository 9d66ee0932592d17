-- leave_host: a crawl has no fetch of a host under way any more; say when others may have it.
-- KEYS[1] prefix  host:  + host: hash, by = the crawl that has it or had it last, ticket = of its latest hold, until =
--                        by when a fetch under way has ended, 0: none is; ended = when the last one did, free = from when
--                        on the next may start; next = the crawl that waits for it, delay = what that one keeps, ms
-- ARGV[1] now_ms (0: this server's clock)    ARGV[2] host    ARGV[3] crawl    ARGV[4] ticket of its latest hold
-- ARGV[5] when its fetch ended ms; 0: nothing was fetched    ARGV[6] free ms: from when on the next may start
-- ARGV[7] kept ms: longest delay that any crawl keeps
-- Returns: 1 when the host is left, 0 when it is another crawl's, or held with a later ticket.
-- Guarantee: only the latest hold of the crawl itself is ended.
-- Lost reply: repeated, it changes nothing.
-- Late: the ticket of an earlier hold ends no later one.
-- Cost: O(1).
-- Uses: prelude/now_ms
local now = now_ms(ARGV[1])
local record = KEYS[1] .. ARGV[2]
local said = redis.call('HMGET', record, 'by', 'ticket', 'ended', 'free', 'delay')
if said[1] ~= ARGV[3] or tonumber(said[2]) > tonumber(ARGV[4]) then
  return 0
end
local ended = math.max(tonumber(said[3] or '0'), tonumber(ARGV[5]))
local free = math.max(tonumber(said[4] or '0'), tonumber(ARGV[6]))
redis.call('HSET', record, 'until', 0, 'ended', ended, 'free', free)
local delay = math.max(tonumber(ARGV[7]), tonumber(said[5] or '0'))
redis.call('PEXPIRE', record, math.max(1, math.max(free, ended + delay) + 2000 - now))
return 1
