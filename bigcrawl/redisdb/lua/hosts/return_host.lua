-- return_host: give back a borrowed host, with its next fetch time.
-- KEYS[1] zset    ready   score = next fetch ms, member = host
-- KEYS[2] prefix  host:   + host: hash, next = next allowed fetch ms, lent = start ms \n until ms \n ticket
-- ARGV[1] now_ms (0: this server's clock)    ARGV[2] host    ARGV[3] ticket    ARGV[4] delay ms of the host from now
-- Returns: 1 if the host was given back, 0 if it is not lent for this ticket.
-- Guarantee: the host is due after its delay, and not before any next fetch time that another call has set.
-- Lost reply: repeated, it changes nothing.
-- Late: the host is no longer lent for the ticket, or it is due when it would have been.
-- Cost: O(log hosts).
-- Uses: prelude/now_ms, prelude/keep_record
local now = now_ms(ARGV[1])
local host, record = ARGV[2], KEYS[2] .. ARGV[2]
local stored = redis.call('HMGET', record, 'next', 'lent')
local start_ms, lent_ms, ticket = string.match(stored[2] or '', '^(%d+)\n(%d+)\n(.*)$')
if ticket ~= ARGV[3] then
  return 0
end
local until_ms = tonumber(lent_ms)
-- If it is given back before its start, the host is due at the start, as before.
local next_ms = math.max(now + tonumber(ARGV[4]), tonumber(start_ms))
local stored_ms = tonumber(stored[1] or '0')
if stored_ms ~= until_ms then
  next_ms = math.max(next_ms, stored_ms)
end
redis.call('HDEL', record, 'lent')
redis.call('HSET', record, 'next', next_ms)
keep_record(record, next_ms - now + 60000)
local score = tonumber(redis.call('ZSCORE', KEYS[1], host) or '-1')
if score == until_ms or (score >= 0 and score < next_ms) then
  redis.call('ZADD', KEYS[1], next_ms, host)
end
return 1
