-- borrow_host: let any node make one fetch of a host that it may not own (a redirected robots.txt).
-- KEYS[1] zset    ready   score = next fetch ms, member = host
-- KEYS[2] hash    busy    host -> URLs taken
-- KEYS[3] prefix  host:   + host: hash, next = next allowed fetch ms, lent = start ms \n until ms \n ticket
-- ARGV[1] now_ms (0: this server's clock)    ARGV[2] host    ARGV[3] ticket: what the host is lent for, unique
-- ARGV[4] ahead_ms: how far ahead the start may lie    ARGV[5] deadline ms: by then after it the fetch has ended
-- Returns: {1, ms until the fetch may start} when the host is lent, else {0, ms to wait before asking again}.
-- Guarantee: the start is due, and from it on nobody else fetches the host until it is given back or the deadline
--            has passed, whoever dies. A busy host pauses after its fetches, so that who asks again in time gets
--            it, however fast its owner is. Owner and epoch are not asked.
-- Lost reply: repeated with the same ticket, it gives the same answer and changes nothing more.
-- Late: the host rests until the deadline, counted from the sending, for nobody.
-- Cost: O(log hosts).
-- Uses: prelude/now_ms, prelude/keep_record
local now = now_ms(ARGV[1])
local ask_ms, pause_ms = 1000, 3000 -- a pause outlasts an asking that comes late, or not at all
local host, record = ARGV[2], KEYS[3] .. ARGV[2]
local said = redis.call('HMGET', record, 'next', 'lent')
local start_ms, until_ms, ticket = string.match(said[2] or '', '^(%d+)\n(%d+)\n(.*)$')
if ticket == ARGV[3] and tonumber(until_ms) > now then
  return {1, math.max(0, tonumber(start_ms) - now)}
end
local score = tonumber(redis.call('ZSCORE', KEYS[1], host) or '-1')
local due_ms = math.max(now, tonumber(said[1] or '0'), math.floor(score)) -- a fraction of a score is no time
local next_ms, reply
if redis.call('HEXISTS', KEYS[2], host) == 1 then
  next_ms = math.max(due_ms, now + pause_ms)
  reply = {0, ask_ms}
elseif due_ms - now > tonumber(ARGV[4]) then
  return {0, due_ms - now}
else
  -- Lending moves the host's next time, and so needs nobody to end it when the borrower dies.
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
