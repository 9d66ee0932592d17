-- return_host: give a borrowed host back with its next fetch time.
-- KEYS[1] zset    ready   score = next fetch ms, member = host
-- KEYS[2] hash    busy    host -> URLs taken
-- KEYS[3] hash    taken   ticket -> host \n taken-at ms \n 0 \n (empty member)
-- KEYS[4] prefix  host:   + host: hash, next = next allowed fetch ms
-- KEYS[5] prefix  back:   + host: zset of waiting URLs
-- ARGV[1] now_ms (0: this server's clock)    ARGV[2] ticket    ARGV[3] delay ms of the host from now
-- Returns: 1 when given back, 0 when the ticket is not known (any more).
-- Guarantee: a host with URLs waiting is ready or busy afterwards; never earlier than said before.
-- Lost reply: repeated, it changes nothing.
-- Cost: O(log hosts).
local now = tonumber(ARGV[1])
if now == 0 then
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
local record = redis.call('HGET', KEYS[3], ARGV[2])
if not record then
  return 0
end
local host = string.match(record, '^([^\n]*)\n')
local next_ms = now + tonumber(ARGV[3])
redis.call('HDEL', KEYS[3], ARGV[2])
if redis.call('HINCRBY', KEYS[2], host, -1) <= 0 then
  redis.call('HDEL', KEYS[2], host)
end
redis.call('HSET', KEYS[4] .. host, 'next', next_ms)
if redis.call('PTTL', KEYS[4] .. host) == -1 then
  redis.call('PEXPIRE', KEYS[4] .. host, tonumber(ARGV[3]) + 60000)
end
if redis.call('EXISTS', KEYS[5] .. host) == 1 then
  redis.call('ZADD', KEYS[1], 'GT', next_ms, host)
end
return 1
