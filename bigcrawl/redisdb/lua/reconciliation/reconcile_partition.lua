-- reconcile_partition: make Redis' record of taken URLs agree with the owner's, after a lost reply or after Redis lost
-- its last seconds; in portions, if the owner holds many.
-- KEYS[1] hash    owner      node, epoch, generation; server = run id of the Redis that knows all fetches of the owner
-- KEYS[2] hash    state      hot, ended, admitted; forgot = 1 if Redis has forgotten; then counters are not exact
-- KEYS[3] zset    ready      score = next fetch ms, member = host
-- KEYS[4] hash    busy       host -> URLs taken
-- KEYS[5] hash    taken      seq -> host \n taken-at ms \n order \n member
-- KEYS[6] prefix  back:      + host: zset, score = order, member = "<seq>:..."
-- KEYS[7] prefix  host:      + host: hash, next = next allowed fetch ms
-- KEYS[8] stream  inbox      fields o = outcomes, v = timed URLs
-- ARGV[1] now_ms (0: this server's clock)    ARGV[2] node id    ARGV[3] epoch
-- ARGV[4] generation, which this call begins    ARGV[5] portion, from 1; the first begins the generation
-- ARGV[6] 1: it is the last portion    ARGV[7] host delay ms if Redis has forgotten something, else 0
-- ARGV[8] number of held URLs    ARGV[9] number of those in earlier portions
-- ARGV[10] number of those whose end was sent without a reply    ARGV[11] number of recently ended URLs
-- ARGV[12] number of places that are left    ARGV[13] run id of this server
-- ARGV[14] recent outcomes for the inbox; '' if none    ARGV[15] recent timed URLs for it; '' if none
-- ARGV[16...] seq, host, order, member of each held URL; seq of each in an earlier portion; seq of each whose end was
--         sent; seq, host, order of each recently ended one; host, order of each place in a back queue where a held or
--         gone URL might be in a Redis that has missed something; host and ms from now of the recent rests
-- Returns: {taken URLs returned to their queues, held URLs taken again, ended URLs removed, last admitted batch, {seq
--          of each whose end was executed}, host, URLs in its back queue, ...}, the hosts only with the last portion;
--          {-1} if another node owns the partition, {-3} if it was reconciled in this or a later generation before.
-- Guarantee: after the last portion exactly the held URLs are taken, except those whose end was executed. None of them
--            or of the ended ones waits in a queue, and hot is the number of URLs that do. No ended URL is removed
--            unless its outcome, and its timed URL, are in the inbox. From the first portion on, calls of an earlier
--            generation are refused. If Redis has forgotten something, its last fetches might be among it: so no host
--            is due before its delay from now, nor before its rest is over. After each portion a URL is taken or queued,
--            never both.
-- Lost reply: repeated in the next generation, it appends outcomes and timed URLs once more, and changes nothing else.
-- Late: refused if the partition was reconciled in a later generation, or has another owner.
-- Cost: O((held + ended + places) * log URLs of a host + taken + hosts * log hosts).
-- Uses: prelude/now_ms, prelude/refusal, prelude/keep_record, prelude/read_taken
local refused = refusal(KEYS[1], ARGV[2], ARGV[3])
if refused then
  return {refused}
end
local before, generation = tonumber(redis.call('HGET', KEYS[1], 'generation') or '0'), tonumber(ARGV[4])
if before > generation or (before == generation) ~= (tonumber(ARGV[5]) > 1) then
  return {-3}
end
redis.call('HSET', KEYS[1], 'generation', ARGV[4])
local now = now_ms(ARGV[1])
local delay_ms = tonumber(ARGV[7])
local due_ms = now + delay_ms
local given_back, taken_again, removed = 0, 0, 0
local idle, held = {}, {}
local function unqueue(host, order)
  return redis.call('ZREMRANGEBYSCORE', KEYS[6] .. host, order, order)
end
-- Return the record of a taken URL, whose host is then not busy with it; false if it is not taken.
local function untake(seq)
  local record = redis.call('HGET', KEYS[5], seq)
  if not record then
    return false
  end
  local host, taken_ms, order, member = read_taken(record)
  redis.call('HDEL', KEYS[5], seq)
  if redis.call('HINCRBY', KEYS[4], host, -1) <= 0 then
    redis.call('HDEL', KEYS[4], host)
  end
  idle[host] = math.max(idle[host] or 0, due_ms)
  return {host = host, taken_ms = tonumber(taken_ms), order = order, member = member}
end
if ARGV[15] ~= '' then
  redis.call('XADD', KEYS[8], '*', 'o', ARGV[14], 'v', ARGV[15])
elseif ARGV[14] ~= '' then
  redis.call('XADD', KEYS[8], '*', 'o', ARGV[14])
end
local held_end = 15 + 4 * tonumber(ARGV[8])
local earlier_end = held_end + tonumber(ARGV[9])
local told_end = earlier_end + tonumber(ARGV[10])
local ended_end = told_end + 3 * tonumber(ARGV[11])
local places_end = ended_end + 2 * tonumber(ARGV[12])
for i = 16, held_end, 4 do
  local seq, host, order, member = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
  held[seq] = true
  local record = redis.call('HGET', KEYS[5], seq)
  local taken_ms = record and select(2, read_taken(record))
  if not taken_ms then
    taken_again = taken_again + 1
    taken_ms = due_ms -- it might have been taken for a later time
    unqueue(host, order)
    redis.call('HINCRBY', KEYS[4], host, 1)
    redis.call('ZREM', KEYS[3], host)
  end
  redis.call('HSET', KEYS[5], seq, host .. '\n' .. taken_ms .. '\n' .. order .. '\n' .. member)
end
for i = held_end + 1, earlier_end, 1 do
  held[ARGV[i]] = true
end
local carried_out = {}
for i = earlier_end + 1, told_end, 1 do
  held[ARGV[i]] = true
  if redis.call('HEXISTS', KEYS[5], ARGV[i]) == 0 then
    carried_out[#carried_out + 1] = ARGV[i]
  end
end
for i = told_end + 1, ended_end, 3 do
  local was_queued = unqueue(ARGV[i + 1], ARGV[i + 2]) > 0
  if untake(ARGV[i]) or was_queued then
    removed = removed + 1
  end
  idle[ARGV[i + 1]] = math.max(idle[ARGV[i + 1]] or 0, due_ms)
end
for i = ended_end + 1, places_end, 2 do
  unqueue(ARGV[i], ARGV[i + 1])
end
for i = places_end + 1, #ARGV, 2 do
  idle[ARGV[i]] = math.max(idle[ARGV[i]] or 0, due_ms, now + tonumber(ARGV[i + 1]))
end
local is_last = ARGV[6] == '1'
for _, seq in ipairs(is_last and redis.call('HKEYS', KEYS[5]) or {}) do
  if not held[seq] then
    local url = untake(seq)
    given_back = given_back + 1
    redis.call('ZADD', KEYS[6] .. url.host, url.order, url.member)
    idle[url.host] = math.max(idle[url.host], url.taken_ms)
  end
end
for host, next_ms in pairs(idle) do
  next_ms = math.max(next_ms, tonumber(redis.call('HGET', KEYS[7] .. host, 'next') or '0'))
  redis.call('HSET', KEYS[7] .. host, 'next', next_ms)
  keep_record(KEYS[7] .. host, next_ms - now + 60000)
  if redis.call('HEXISTS', KEYS[4], host) == 0 and redis.call('EXISTS', KEYS[6] .. host) == 1 then
    redis.call('ZADD', KEYS[3], 'GT', next_ms, host)
  end
end
if removed > 0 then
  redis.call('HINCRBY', KEYS[2], 'ended', removed)
end
local reply = {given_back, taken_again, removed, tonumber(redis.call('HGET', KEYS[2], 'admitted') or '0'), carried_out}
if not is_last then
  return reply
end
if delay_ms > 0 or places_end > told_end then
  redis.call('HSET', KEYS[2], 'forgot', 1)
end
if delay_ms > 0 then
  for i, host in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', due_ms)) do -- keeps their order
    redis.call('ZADD', KEYS[3], due_ms + i / 1024, host)
  end
end
if ARGV[13] ~= '' then
  redis.call('HSET', KEYS[1], 'server', ARGV[13])
end
local hot, counted = 0, {}
local function count(host)
  local urls = counted[host] and 0 or redis.call('ZCARD', KEYS[6] .. host)
  counted[host] = true
  if urls > 0 then
    hot = hot + urls
    reply[#reply + 1] = host
    reply[#reply + 1] = urls
  end
end
for _, host in ipairs(redis.call('ZRANGE', KEYS[3], 0, -1)) do
  count(host)
end
for _, host in ipairs(redis.call('HKEYS', KEYS[4])) do
  count(host)
end
redis.call('HSET', KEYS[2], 'hot', hot)
return reply
