-- leave_host: release a host that this crawl no longer fetches, and set the time from which others may have it.
-- KEYS[1] prefix  host:  + host: hash, by = the crawl that holds or last held it, ticket = of its latest hold,
--                        until = end of the fetch under way, at the latest (0: none is), ended = end of the last one,
--                        free = when the next may start, all ms; next = the crawl that waits for the host, delay = its
--                        delay ms
-- ARGV[1] now_ms (0: this server's clock)    ARGV[2] host    ARGV[3] crawl    ARGV[4] ticket of its latest hold
-- ARGV[5] when its fetch ended ms; 0 if nothing was fetched    ARGV[6] free ms: the next fetch may start from then
-- ARGV[7] kept ms: the longest delay that any crawl keeps
-- Returns: 1 if the host was released, 0 if another crawl holds it, or a later ticket does.
-- Guarantee: only the crawl's own latest hold is ended.
-- Lost reply: repeated, it changes nothing.
-- Late: the ticket of an earlier hold does not end a later one.
-- Cost: O(1).
-- Uses: prelude/now_ms
local now = now_ms(ARGV[1])
local record = KEYS[1] .. ARGV[2]
local stored = redis.call('HMGET', record, 'by', 'ticket', 'ended', 'free', 'delay')
if stored[1] ~= ARGV[3] or tonumber(stored[2]) > tonumber(ARGV[4]) then
  return 0
end
local ended = math.max(tonumber(stored[3] or '0'), tonumber(ARGV[5]))
local free = math.max(tonumber(stored[4] or '0'), tonumber(ARGV[6]))
redis.call('HSET', record, 'until', 0, 'ended', ended, 'free', free)
local delay = math.max(tonumber(ARGV[7]), tonumber(stored[5] or '0'))
redis.call('PEXPIRE', record, math.max(1, math.max(free, ended + delay) + 2000 - now))
return 1
