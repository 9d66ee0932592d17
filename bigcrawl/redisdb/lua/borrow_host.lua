-- borrow_host: let a node that does not own the partition make one fetch of a host (a redirected robots.txt).
-- KEYS[1] zset    ready   score = next fetch ms, member = host
-- KEYS[2] hash    busy    host -> URLs taken
-- KEYS[3] hash    taken   ticket -> host \n taken-at ms \n 0 \n (empty member)
-- KEYS[4] prefix  host:   + host: hash, next = next allowed fetch ms
-- ARGV[1] now_ms (0: this server's clock)    ARGV[2] host    ARGV[3] ticket: who borrows, unique
-- ARGV[4] connections a host may have
-- Returns: 0 when the host is lent, else ms to wait before asking again.
-- Guarantee: a lent host is busy like one with a URL taken; its delay was over; owner and epoch are not asked.
-- Lost reply: a repeat finds the host busy; the partition's next claim or reconcile frees it.
-- Cost: O(log hosts).
local now = tonumber(ARGV[1])
if now == 0 then
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
local host = ARGV[2]
local connections = tonumber(ARGV[4])
if tonumber(redis.call('HGET', KEYS[2], host) or '0') >= connections then
  return 1000
end
local next_ms = tonumber(redis.call('HGET', KEYS[4] .. host, 'next') or '0')
next_ms = math.max(next_ms, tonumber(redis.call('ZSCORE', KEYS[1], host) or '0'))
if next_ms > now then
  return next_ms - now
end
redis.call('HSET', KEYS[3], ARGV[3], host .. '\n' .. now .. '\n0\n')
if redis.call('HINCRBY', KEYS[2], host, 1) >= connections then
  redis.call('ZREM', KEYS[1], host)
end
return 0
