-- announce_end: announce that a crawl is finished.
-- KEYS[1] hash  crawl    finished = the crawl's counters at its end
-- KEYS[2] zset  events   score = ms, member = ms \n kind \n node \n text
-- ARGV[1] now_ms (0: this server's clock)    ARGV[2] the counters
-- Returns: 1.
-- Guarantee: an end that was announced with the same counters is one event.
-- Lost reply: repeated, it changes nothing.
-- Late: the node has checked the counters, and whoever reads the announcement compares them.
-- Cost: O(log events).
-- Uses: prelude/now_ms, prelude/add_event
local now = now_ms(ARGV[1])
if redis.call('HGET', KEYS[1], 'finished') ~= ARGV[2] then
  redis.call('HSET', KEYS[1], 'finished', ARGV[2])
  add_event(KEYS[2], now, 'finished', '', '')
end
return 1
