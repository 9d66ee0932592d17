-- grant_starts: grant a node start times of fetches, so that all nodes together keep the crawl's speed.
-- KEYS[1] hash  speed    pages, bytes: us of the next start that each limit allows
-- ARGV[1] now_ms (0: this server's clock)    ARGV[2] page us: between starts, by pages a second; 0 for no limit
-- ARGV[3] bytes us: between starts, by bytes a second; 0 for no limit    ARGV[4] debt us: bytes received beyond those
--         charged, as time; negative if they were fewer    ARGV[5] starts wanted    ARGV[6] share of the node
-- ARGV[7] unused starts that are given back    ARGV[8] horizon ms: starts are granted at most so far ahead
-- Returns: {now us, first start us, us between starts, starts granted}; the number may be 0.
-- Guarantee: in any time T, at most T / interval starts are granted, plus those of half a second. Starts that one node
--            does not want go to others. Bytes beyond the limit are compensated within a minute.
-- Lost reply: a repeat wastes the starts that were granted.
-- Late: the starts are wasted. Starts given back and the debt count when they arrive.
-- Cost: O(1).
-- Uses: prelude/now_ms
local now = now_ms(ARGV[1]) * 1000
local page_us, bytes_us = tonumber(ARGV[2]), tonumber(ARGV[3])
local earliest = now - 500000 -- unused starts of the last half second may be caught up
local stored = redis.call('HMGET', KEYS[1], 'pages', 'bytes')
local given_back = tonumber(ARGV[7])
local pages = math.max(tonumber(stored[1] or now) - given_back * page_us, earliest)
local bytes = math.max(tonumber(stored[2] or now) - given_back * bytes_us, earliest) + tonumber(ARGV[4])
bytes = math.min(math.max(bytes, earliest), now + 60000000)
local first, step = earliest, math.max(page_us, bytes_us)
if page_us > 0 then
  first = math.max(first, pages)
end
if bytes_us > 0 then
  first = math.max(first, bytes)
end
local ahead = now + tonumber(ARGV[8]) * 1000 - first
local granted = 0
if step > 0 and ahead >= 0 then
  local unused = math.max(0, math.floor((now - first) / step))
  granted = math.min(tonumber(ARGV[5]), tonumber(ARGV[6]) + unused, math.floor(ahead / step) + 1)
end
pages, bytes = pages + granted * page_us, bytes + granted * bytes_us
redis.call('HSET', KEYS[1], 'pages', string.format('%.0f', pages), 'bytes', string.format('%.0f', bytes))
return {now, math.floor(first), math.floor(step), granted}
