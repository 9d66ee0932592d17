-- admit_urls: put the numbered admit batch of a committed step into the back queues.
-- KEYS[1] hash    owner      node, epoch; rest = until when hosts wait whose fetches might be unknown to Redis
-- KEYS[2] hash    state      admitted = number of the last batch; hot = URLs in back queues; committed = 1; ended
--                            admitted_urls = URLs of all batches up to this one
-- KEYS[3] zset    ready      score = next fetch ms, and a fraction for the order in which hosts came; member = host
-- KEYS[4] hash    busy       host -> URLs taken
-- KEYS[5] prefix  back:      + host: zset, score = order, member = "<seq>:..."
-- KEYS[6] prefix  host:      + host: hash, next = next allowed fetch ms; delay = its rest after its last fetch
-- KEYS[7] hash    batches    number -> packed 8-byte keys, until the owner's manifest is durable
-- ARGV[1] now_ms (0: this server's clock)    ARGV[2] node id    ARGV[3] epoch    ARGV[4] batch number
-- ARGV[5] packed keys    ARGV[6] connections a host may have    ARGV[7] URLs chosen for all batches up to it
-- ARGV[8] URLs left out of it, because they have ended    ARGV[9] head start ms, at most 60000, of hosts without a
--         record: they are due that much earlier
-- ARGV[10...] of each host: its name, how many words follow, order, member of each of its URLs
-- Returns: 1 if admitted, 0 if admitted before, -1 if another node owns the partition, -2 if an earlier batch is
--          missing.
-- Guarantee: number n is accepted only once, and only after n-1. A host with waiting URLs is ready or busy. Hosts that
--            are due at once are due in the order of the batch.
-- Lost reply: repeated, it changes nothing.
-- Late: like a repeat: its number is taken, or is still the next one.
-- Cost: O(URLs * log hosts).
-- Uses: prelude/now_ms, prelude/refusal, prelude/call_many, prelude/ask_many
local refused = refusal(KEYS[1], ARGV[2], ARGV[3])
if refused then
  return refused
end
local number = tonumber(ARGV[4])
local admitted = tonumber(redis.call('HGET', KEYS[2], 'admitted') or '0')
if number <= admitted then
  return 0
end
if number ~= admitted + 1 then
  return -2
end
local now = now_ms(ARGV[1])
local connections, head_start_ms = tonumber(ARGV[6]), tonumber(ARGV[9])
local rest_ms = tonumber(redis.call('HGET', KEYS[1], 'rest') or '0')
local is_resting = rest_ms > now
local hosts, urls = {}, 0
local at = 10
while at < #ARGV do
  local host, words = ARGV[at], tonumber(ARGV[at + 1])
  call_many('ZADD', KEYS[5] .. host, ARGV, nil, at + 2, at + 1 + words)
  hosts[#hosts + 1] = host
  urls = urls + words / 2
  at = at + 2 + words
end
local busy, ready = ask_many('HMGET', KEYS[4], hosts), ask_many('ZMSCORE', KEYS[3], hosts)
local due = {}
for i, host in ipairs(hosts) do
  if not ready[i] and tonumber(busy[i] or '0') < connections then
    local stored = redis.call('HMGET', KEYS[6] .. host, 'next', 'delay')
    local next_ms = tonumber(stored[1] or '0')
    local from_ms = stored[1] and now or now - head_start_ms -- a record lives for a minute after its host was due
    if is_resting then
      next_ms = math.max(next_ms, rest_ms + tonumber(stored[2] or '0'))
    end
    due[#due + 1] = math.max(from_ms, next_ms) + (i - 1) / 1024
    due[#due + 1] = host
  end
end
call_many('ZADD', KEYS[3], due, 'NX')
redis.call('HSET', KEYS[2], 'admitted', number, 'admitted_urls', ARGV[7], 'committed', 1)
redis.call('HINCRBY', KEYS[2], 'hot', urls)
if ARGV[8] ~= '0' then
  redis.call('HINCRBY', KEYS[2], 'ended', ARGV[8])
end
redis.call('HSET', KEYS[7], number, ARGV[5])
return 1
