-- take_urls: hand the owner URLs of hosts that are due now or within the horizon.
-- KEYS[1] hash    owner
-- KEYS[2] hash    state      hot = URLs in back queues
-- KEYS[3] zset    ready      score = next fetch ms, member = host
-- KEYS[4] hash    busy       host -> URLs taken
-- KEYS[5] hash    taken      seq -> host \n taken-at ms \n order \n member
-- KEYS[6] prefix  back:      + host: zset, score = order, member = "<seq>:..."
-- ARGV[1] now_ms (0: this server's clock)    ARGV[2] node id    ARGV[3] epoch    ARGV[4] URLs at most
-- ARGV[5] horizon ms    ARGV[6] connections a host may have    ARGV[7] host delay ms between their starts
-- Returns: {now_ms, next due ms of the partition or -1, host, due ms, member, ...}, earliest due first;
--          {-1} when another node owns the partition.
-- Guarantee: a URL is in its back queue or taken, never both; a host has at most ARGV[6] URLs taken.
-- Lost reply: the URLs stay taken; reconcile_partition gives them back.
-- Cost: O(URLs * log hosts).
local owner = redis.call('HMGET', KEYS[1], 'node', 'epoch')
if owner[1] ~= ARGV[2] or owner[2] ~= ARGV[3] then
  return {-1}
end
local now = tonumber(ARGV[1])
if now == 0 then
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
local connections = tonumber(ARGV[6])
local reply = {now, -1}
local due = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now + tonumber(ARGV[5]), 'WITHSCORES', 'LIMIT', 0, ARGV[4])
for i = 1, #due, 2 do
  local host, due_ms = due[i], due[i + 1]
  local back = KEYS[6] .. host
  local first = redis.call('ZPOPMIN', back)
  if first[1] then
    local seq = string.match(first[1], '^(%d+):')
    redis.call('HSET', KEYS[5], seq, host .. '\n' .. math.max(now, due_ms) .. '\n' .. first[2] .. '\n' .. first[1])
    local count = redis.call('HINCRBY', KEYS[4], host, 1)
    if count < connections and redis.call('EXISTS', back) == 1 then
      redis.call('ZADD', KEYS[3], math.max(now, due_ms) + tonumber(ARGV[7]), host)
    else
      redis.call('ZREM', KEYS[3], host)
    end
    reply[#reply + 1] = host
    reply[#reply + 1] = due_ms
    reply[#reply + 1] = first[1]
  else
    redis.call('ZREM', KEYS[3], host)
  end
end
if #reply > 2 then -- Redis 7.0 writes a Lua -0 as "-0", which HINCRBY refuses
  redis.call('HINCRBY', KEYS[2], 'hot', (2 - #reply) / 3)
end
local head = redis.call('ZRANGE', KEYS[3], 0, 0, 'WITHSCORES')
if head[2] then
  reply[2] = math.floor(tonumber(head[2]))
end
return reply
