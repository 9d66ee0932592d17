-- end_urls: acknowledge, fail or return taken URLs and give their hosts the next fetch time.
-- KEYS[1] hash    owner
-- KEYS[2] hash    state      hot, ended, and counters named in ARGV
-- KEYS[3] zset    ready      score = next fetch ms, member = host
-- KEYS[4] hash    busy       host -> URLs taken
-- KEYS[5] hash    taken      seq -> host \n taken-at ms \n order \n member
-- KEYS[6] prefix  back:      + host: zset, score = order, member = "<seq>:..."
-- KEYS[7] prefix  host:      + host: hash, next = next allowed fetch ms
-- ARGV[1] now_ms (0: this server's clock)    ARGV[2] node id    ARGV[3] epoch    ARGV[4] connections of a host
-- ARGV[5...] per URL: seq, delay ms of its host from now, new member ('' acknowledge, '=' return as it was,
--            else a failed URL's next try), counter to raise ('' none), bytes to add to the counter bytes
-- Returns: URLs ended; -1 when another node owns the partition.
-- Guarantee: an acknowledged URL is gone, a returned or failed one is at its old place, which is the head of its
--            host's queue among equals; a host with URLs waiting is ready or busy. Never earlier than said before,
--            and its record lives for one to two minutes longer than that.
-- Lost reply: a URL that is not taken any more is passed over, so a repeat changes nothing.
-- Cost: O(URLs * log hosts).
local owner = redis.call('HMGET', KEYS[1], 'node', 'epoch')
if owner[1] ~= ARGV[2] or owner[2] ~= ARGV[3] then
  return -1
end
local now = tonumber(ARGV[1])
if now == 0 then
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
local connections = tonumber(ARGV[4])
local ended, returned, hot, bytes, counts = 0, 0, 0, 0, {}
for i = 5, #ARGV, 5 do
  local record = redis.call('HGET', KEYS[5], ARGV[i])
  if record then
    local host, taken_ms, order, member = string.match(record, '^([^\n]*)\n([^\n]*)\n([^\n]*)\n(.*)$')
    local said_ms = redis.call('HGET', KEYS[7] .. host, 'next')
    -- Taken-at lies ahead when the URL comes back before its host was due.
    local next_ms = math.max(now + tonumber(ARGV[i + 1]), tonumber(said_ms or '0'), tonumber(taken_ms))
    redis.call('HDEL', KEYS[5], ARGV[i])
    local count = redis.call('HINCRBY', KEYS[4], host, -1)
    if count <= 0 then
      redis.call('HDEL', KEYS[4], host)
    end
    if ARGV[i + 2] == '' then
      ended = ended + 1
    else
      returned = returned + 1
      hot = hot + redis.call('ZADD', KEYS[6] .. host, order, ARGV[i + 2] == '=' and member or ARGV[i + 2])
    end
    if ARGV[i + 3] ~= '' then
      counts[ARGV[i + 3]] = (counts[ARGV[i + 3]] or 0) + 1
      bytes = bytes + tonumber(ARGV[i + 4])
    end
    redis.call('HSET', KEYS[7] .. host, 'next', next_ms)
    if redis.call('PTTL', KEYS[7] .. host) < next_ms - now + 60000 then -- renewed every minute, not for each URL
      redis.call('PEXPIRE', KEYS[7] .. host, next_ms - now + 120000)
    end
    if count < connections and redis.call('EXISTS', KEYS[6] .. host) == 1 then
      redis.call('ZADD', KEYS[3], 'GT', next_ms, host)
    end
  end
end
for counter, count in pairs(counts) do
  redis.call('HINCRBY', KEYS[2], counter, count)
end
if bytes > 0 then
  redis.call('HINCRBY', KEYS[2], 'bytes', bytes)
end
if ended > 0 then
  redis.call('HINCRBY', KEYS[2], 'ended', ended)
end
if hot > 0 then
  redis.call('HINCRBY', KEYS[2], 'hot', hot)
end
return ended + returned
