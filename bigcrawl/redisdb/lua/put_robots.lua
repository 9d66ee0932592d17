-- put_robots: keep an authority's robots rules in its host's record, within the partition's cap on records.
-- KEYS[1] prefix  host:    + host: hash, robots:<scheme>:<port> = rules, next = next allowed fetch ms
-- KEYS[2] zset    records  score = when the record was last written, member = host
-- KEYS[3] zset    ready    score = next fetch ms, member = host
-- KEYS[4] hash    busy     host -> URLs taken
-- ARGV[1] now_ms (0: this server's clock)    ARGV[2] host    ARGV[3] field    ARGV[4] rules
-- ARGV[5] expiry ms from now    ARGV[6] records the partition may keep
-- Returns: records evicted.
-- Guarantee: a record with its next allowed time still ahead, or whose host is ready or busy, is not evicted,
--            and none expires before its next allowed time.
-- Lost reply: repeated, it changes nothing more.
-- Cost: O(log records), and O(16) looks at most for what to evict.
local now = tonumber(ARGV[1])
if now == 0 then
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
local key = KEYS[1] .. ARGV[2]
redis.call('HSET', key, ARGV[3], ARGV[4])
local ahead_ms = tonumber(redis.call('HGET', key, 'next') or '0') - now
redis.call('PEXPIRE', key, math.max(tonumber(ARGV[5]), ahead_ms + 60000))
redis.call('ZADD', KEYS[2], now, ARGV[2])
local over = redis.call('ZCARD', KEYS[2]) - tonumber(ARGV[6])
if over <= 0 then
  return 0
end
local evicted = 0
local oldest = redis.call('ZRANGE', KEYS[2], 0, math.min(over, 16) - 1)
for _, host in ipairs(oldest) do
  local next_ms = tonumber(redis.call('HGET', KEYS[1] .. host, 'next') or '0')
  local in_use = redis.call('ZSCORE', KEYS[3], host) or redis.call('HEXISTS', KEYS[4], host) == 1
  if next_ms <= now and not in_use then
    redis.call('DEL', KEYS[1] .. host)
    redis.call('ZREM', KEYS[2], host)
    evicted = evicted + 1
  else
    redis.call('ZADD', KEYS[2], now, host)
  end
end
return evicted
