-- borrow_host: let any node make one fetch of a host that it may not own (a redirected robots.txt).
-- KEYS[1] zset    ready   score = next fetch ms, member = host
-- KEYS[2] hash    busy    host -> URLs taken
-- KEYS[3] prefix  host:   + host: hash, next = next allowed fetch ms, lent = until ms \n ticket
-- ARGV[1] now_ms (0: this server's clock)    ARGV[2] host    ARGV[3] ticket: what the host is lent for, unique
-- ARGV[4] connections a host may have    ARGV[5] deadline ms from now: by then the fetch has ended
-- Returns: 0 when the host is lent, else ms to wait before asking again.
-- Guarantee: the host's delay was over, and nobody else starts a fetch of it until it is given back or the
--            deadline has passed, whoever dies; owner and epoch are not asked.
-- Lost reply: repeated with the same ticket, it gives the same answer and changes nothing more.
-- Cost: O(log hosts).
local now = tonumber(ARGV[1])
if now == 0 then
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
local host, record = ARGV[2], KEYS[3] .. ARGV[2]
local said = redis.call('HMGET', record, 'next', 'lent')
local lent_ms, ticket = string.match(said[2] or '', '^(%d+)\n(.*)$')
if ticket == ARGV[3] and tonumber(lent_ms) > now then
  return 0
end
if tonumber(redis.call('HGET', KEYS[2], host) or '0') >= tonumber(ARGV[4]) then
  return 1000
end
local score = redis.call('ZSCORE', KEYS[1], host)
local next_ms = math.max(tonumber(said[1] or '0'), tonumber(score or '0'))
if next_ms > now then
  return next_ms - now
end
-- Lending moves the host's next time, and so needs nobody to end it when the borrower dies.
local until_ms = now + tonumber(ARGV[5])
redis.call('HSET', record, 'next', until_ms, 'lent', string.format('%.0f', until_ms) .. '\n' .. ARGV[3])
if redis.call('PTTL', record) < until_ms - now + 60000 then
  redis.call('PEXPIRE', record, until_ms - now + 60000)
end
if score then
  redis.call('ZADD', KEYS[1], until_ms, host)
end
return 0
