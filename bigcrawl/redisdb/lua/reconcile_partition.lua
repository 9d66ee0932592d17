-- reconcile_partition: bring what Redis holds as taken back in line with what the owner holds, after a lost
-- reply or after Redis lost its last second.
-- KEYS[1] hash    owner
-- KEYS[2] hash    state      hot, ended
-- KEYS[3] zset    ready      score = next fetch ms, member = host
-- KEYS[4] hash    busy       host -> URLs taken
-- KEYS[5] hash    taken      seq -> host \n taken-at ms \n order \n member
-- KEYS[6] prefix  back:      + host: zset, score = order, member = "<seq>:..."
-- KEYS[7] prefix  host:      + host: hash, next = next allowed fetch ms
-- ARGV[1] now_ms (0: this server's clock)    ARGV[2] node id    ARGV[3] epoch    ARGV[4] host delay ms
-- ARGV[5] number of URLs held    ARGV[6] number of URLs ended lately    ARGV[7...] seq, host, order, member of each
--         URL held, then of each ended lately; then host and ms from now of the rests that were said lately
-- Returns: {taken URLs given back to their queues, held URLs taken again, ended URLs removed};
--          {-1} when another node owns the partition.
-- Guarantee: afterwards exactly the held URLs are taken, none of them or of the ended ones waits in a queue, and
--            no host is due before its delay from now, and before its rest is over, because its last fetch may
--            have been forgotten.
-- Lost reply: repeated, it changes nothing more.
-- Cost: O((held + ended) * URLs in a host's back queue + hosts * log hosts).
local owner = redis.call('HMGET', KEYS[1], 'node', 'epoch')
if owner[1] ~= ARGV[2] or owner[2] ~= ARGV[3] then
  return {-1}
end
local now = tonumber(ARGV[1])
if now == 0 then
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
local old = redis.call('HGETALL', KEYS[5])
local before = {}
for i = 1, #old, 2 do
  before[old[i]] = old[i + 1]
end
redis.call('DEL', KEYS[4], KEYS[5])
local given_back, taken_again, removed, hot = 0, 0, 0, 0
local due_ms = now + tonumber(ARGV[4])
-- By seq, not by member or order: those of a URL that failed or was put off differ from try to try, and a Redis that
-- forgot may have any of them.
local function unqueue(seq, host)
  local count = 0
  for _, member in ipairs(redis.call('ZRANGE', KEYS[6] .. host, 0, -1)) do
    if string.match(member, '^(%d+):') == seq then
      count = count + redis.call('ZREM', KEYS[6] .. host, member)
    end
  end
  hot = hot - count
  return count
end
local held_end = 6 + 4 * tonumber(ARGV[5])
local ended_end = held_end + 4 * tonumber(ARGV[6])
for i = 7, held_end, 4 do
  local seq, host, order, member = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
  local taken_ms = before[seq] and string.match(before[seq], '^[^\n]*\n([^\n]*)\n')
  if not taken_ms then
    taken_again = taken_again + 1
    taken_ms = due_ms -- it may have been taken for a time that still lies ahead
  end
  unqueue(seq, host)
  before[seq] = nil
  redis.call('HSET', KEYS[5], seq, host .. '\n' .. taken_ms .. '\n' .. order .. '\n' .. member)
  redis.call('HINCRBY', KEYS[4], host, 1)
  redis.call('ZREM', KEYS[3], host)
end
local idle = {}
for i = held_end + 1, ended_end, 4 do
  local seq, host = ARGV[i], ARGV[i + 1]
  if unqueue(seq, host) > 0 or before[seq] then
    removed = removed + 1
  end
  before[seq] = nil
  idle[host] = due_ms
end
for i = ended_end + 1, #ARGV, 2 do
  idle[ARGV[i]] = math.max(due_ms, now + tonumber(ARGV[i + 1]))
end
for _, record in pairs(before) do
  local host, taken_ms, order, member = string.match(record, '^([^\n]*)\n([^\n]*)\n([^\n]*)\n(.*)$')
  given_back = given_back + 1
  hot = hot + redis.call('ZADD', KEYS[6] .. host, order, member)
  idle[host] = math.max(due_ms, tonumber(taken_ms), idle[host] or 0)
end
for host, next_ms in pairs(idle) do
  next_ms = math.max(next_ms, tonumber(redis.call('HGET', KEYS[7] .. host, 'next') or '0'))
  redis.call('HSET', KEYS[7] .. host, 'next', next_ms)
  if redis.call('PTTL', KEYS[7] .. host) < next_ms - now + 60000 then
    redis.call('PEXPIRE', KEYS[7] .. host, next_ms - now + 60000)
  end
  if redis.call('HEXISTS', KEYS[4], host) == 0 and redis.call('EXISTS', KEYS[6] .. host) == 1 then
    redis.call('ZADD', KEYS[3], 'GT', next_ms, host)
  end
end
local hosts = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', due_ms)
for _, host in ipairs(hosts) do
  redis.call('ZADD', KEYS[3], due_ms, host)
end
redis.call('HINCRBY', KEYS[2], 'hot', hot)
redis.call('HINCRBY', KEYS[2], 'ended', removed)
return {given_back, taken_again, removed}
