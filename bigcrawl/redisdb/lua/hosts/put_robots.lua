-- put_robots: keep an authority's robots rules in its host's record, within the limits of the partition.
-- KEYS[1] prefix  host:    + host: hash, robots:<authority> = expiry ms \n rules, next = next allowed fetch ms,
--                          delay = the host's rest after a fetch, if longer than usual
-- KEYS[2] zset    records  score = last writing of the record, member = host
-- KEYS[3] zset    ready    score = next fetch ms, member = host
-- KEYS[4] hash    busy     host -> URLs taken
-- KEYS[5] hash    rules    host -> bytes of its rules, '' -> of all
-- ARGV[1] now_ms (0: this server's clock)    ARGV[2] host    ARGV[3] field    ARGV[4] rules
-- ARGV[5] expiry ms from now    ARGV[6] ms that stale rules are kept longer, in case their server fails
-- ARGV[7] most records of the partition    ARGV[8] most bytes of its rules
-- ARGV[9] delay ms of the host by these rules, 0 if it is not longer than usual
-- Returns: the number of records that were evicted or lost their rules.
-- Guarantee: a record is not evicted if it was written now, if its next allowed time is ahead, or if its host is ready
--            or busy; but it may lose its rules. None expires before its next allowed time. A node that claims the
--            partition before the fetch of the rules has ended knows the delay.
-- Lost reply: repeated, it changes nothing more.
-- Late: these rules replace newer ones, until they expire.
-- Cost: O(log records), and at most 16 looks for a record to evict.
-- Uses: prelude/now_ms
local now = now_ms(ARGV[1])
local key, host = KEYS[1] .. ARGV[2], ARGV[2]
local total = tonumber(redis.call('HGET', KEYS[5], '') or '0')
local function record_bytes(of, bytes)
  total = total - tonumber(redis.call('HGET', KEYS[5], of) or '0') + bytes
  if bytes > 0 then
    redis.call('HSET', KEYS[5], of, bytes)
  else
    redis.call('HDEL', KEYS[5], of)
  end
end
local others = 0
if redis.call('EXISTS', key) == 1 then -- else it has expired with its bytes
  others = tonumber(redis.call('HGET', KEYS[5], host) or '0') - redis.call('HSTRLEN', key, ARGV[3])
end
local value = string.format('%.0f\n', now + tonumber(ARGV[5])) .. ARGV[4]
redis.call('HSET', key, ARGV[3], value)
record_bytes(host, math.max(0, others) + #value)
local delay_ms = tonumber(ARGV[9])
if delay_ms > tonumber(redis.call('HGET', key, 'delay') or '0') then
  redis.call('HSET', key, 'delay', delay_ms)
end
local ahead_ms = tonumber(redis.call('HGET', key, 'next') or '0') - now
redis.call('PEXPIRE', key, math.max(tonumber(ARGV[5]) + tonumber(ARGV[6]), ahead_ms + 60000))
redis.call('ZADD', KEYS[2], now, host)
local records_max, bytes_max = tonumber(ARGV[7]), tonumber(ARGV[8])
local evicted = 0
local oldest = redis.call('ZRANGE', KEYS[2], 0, 15)
for _, old in ipairs(oldest) do
  local is_over = redis.call('ZCARD', KEYS[2]) > records_max
  if not is_over and total <= bytes_max then
    break
  end
  local record = KEYS[1] .. old
  local next_ms = tonumber(redis.call('HGET', record, 'next') or '0')
  local in_use = redis.call('ZSCORE', KEYS[3], old) or redis.call('HEXISTS', KEYS[4], old) == 1
  if old ~= host and next_ms <= now and not in_use then
    redis.call('DEL', record)
    redis.call('ZREM', KEYS[2], old)
    record_bytes(old, 0)
    evicted = evicted + 1
  else
    if total > bytes_max and redis.call('HEXISTS', KEYS[5], old) == 1 then
      for _, field in ipairs(redis.call('HKEYS', record)) do
        if string.sub(field, 1, 7) == 'robots:' then
          redis.call('HDEL', record, field)
        end
      end
      record_bytes(old, 0)
      evicted = evicted + 1
    end
    redis.call('ZADD', KEYS[2], now, old)
  end
end
redis.call('HSET', KEYS[5], '', total)
return evicted
