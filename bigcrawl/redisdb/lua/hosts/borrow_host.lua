-- borrow_host: lend a host for one fetch to a node that may not own it (for a redirected robots.txt).
-- KEYS[1] zset    ready   score = next fetch ms, member = host
-- KEYS[2] hash    busy    host -> URLs taken
-- KEYS[3] prefix  host:   + host: hash, next = next allowed fetch ms, lent = start ms \n until ms \n ticket
-- ARGV[1] now_ms (0: this server's clock)    ARGV[2] host    ARGV[3] ticket, unique for this loan
-- ARGV[4] ahead ms: the start is at most so far ahead    ARGV[5] deadline ms: the longest time of the fetch
-- Returns: {1, ms until the fetch may start} if the host is lent, else {0, ms to wait before asking again}.
-- Guarantee: the host is due at the start. From then on no other node fetches it until it is given back or the
--            deadline has passed, even if the borrower dies. A busy host pauses after its current fetches, so that a
--            borrower that asks again in time gets it, however fast its owner is. Owner and epoch are not checked.
-- Lost reply: repeated with the same ticket, it gives the same answer and changes nothing more.
-- Late: the host is not fetched until the deadline, counted from the time of sending.
-- Cost: O(log hosts).
-- Uses: prelude/now_ms, prelude/keep_record
local now = now_ms(ARGV[1])
local ask_ms, pause_ms = 1000, 3000 -- a pause lasts until the next question, even if one is late or missing
local host, record = ARGV[2], KEYS[3] .. ARGV[2]
local stored = redis.call('HMGET', record, 'next', 'lent')
local start_ms, until_ms, ticket = string.match(stored[2] or '', '^(%d+)\n(%d+)\n(.*)$')
if ticket == ARGV[3] and tonumber(until_ms) > now then
  return {1, math.max(0, tonumber(start_ms) - now)}
end
local score = tonumber(redis.call('ZSCORE', KEYS[1], host) or '-1')
local due_ms = math.max(now, tonumber(stored[1] or '0'), math.floor(score)) -- the fraction of a score only orders hosts
local next_ms, reply
if redis.call('HEXISTS', KEYS[2], host) == 1 then
  next_ms = math.max(due_ms, now + pause_ms)
  reply = {0, ask_ms}
elseif due_ms - now > tonumber(ARGV[4]) then
  return {0, due_ms - now}
else
  -- Lending sets the host's next fetch time, so it ends by itself if the borrower dies.
  next_ms = due_ms + tonumber(ARGV[5])
  reply = {1, due_ms - now}
  redis.call('HSET', record, 'lent', string.format('%.0f\n%.0f\n%s', due_ms, next_ms, ARGV[3]))
end
redis.call('HSET', record, 'next', next_ms)
keep_record(record, next_ms - now + 60000)
if score >= 0 then
  redis.call('ZADD', KEYS[1], next_ms, host)
end
return reply
