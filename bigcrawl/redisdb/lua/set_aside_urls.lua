-- set_aside_urls: put taken URLs back into their partition's inbox, unfetched; the owner's next step keeps them on disk.
-- KEYS[1] hash    owner      node, epoch, generation
-- KEYS[2] hash    state      appended, appended_urls, set_aside = URLs ever set aside
-- KEYS[3] zset    ready      score = next fetch ms, member = host
-- KEYS[4] hash    busy       host -> URLs taken
-- KEYS[5] hash    taken      seq -> host \n taken-at ms \n order \n member
-- KEYS[6] prefix  back:      + host: zset, score = order, member = "<seq>:..."
-- KEYS[7] prefix  host:      + host: hash, next = next allowed fetch ms
-- KEYS[8] stream  inbox      field b = encoded batch
-- ARGV[1] now_ms (0: this server's clock)    ARGV[2] node id    ARGV[3] epoch    ARGV[4] generation
-- ARGV[5] connections of a host
-- ARGV[6...] per URL: seq, batch of the one URL
-- Returns: {id of each URL's inbox entry, '' of one that was not taken}; -1 when another node owns the partition,
--          -3 when both sides were compared since the call was made.
-- Guarantee: a URL is taken or in the inbox, never both and never neither. Its host may be asked when it might before.
-- Lost reply: a URL that is taken no more is passed over.
-- Late: refused, for the comparison after a lost reply raises the generation.
-- Cost: O(URLs * log hosts).
-- Uses: prelude/now_ms, prelude/refusal, prelude/read_taken
local refused = refusal(KEYS[1], ARGV[2], ARGV[3], ARGV[4])
if refused then
  return refused
end
local now = now_ms(ARGV[1])
local moved, ids = 0, {}
for i = 6, #ARGV, 2 do
  local record = redis.call('HGET', KEYS[5], ARGV[i])
  local id = ''
  if record then
    local host, taken_ms = read_taken(record)
    local said_ms = tonumber(redis.call('HGET', KEYS[7] .. host, 'next') or '0')
    id = redis.call('XADD', KEYS[8], '*', 'b', ARGV[i + 1])
    redis.call('HDEL', KEYS[5], ARGV[i])
    local count = redis.call('HINCRBY', KEYS[4], host, -1)
    if count <= 0 then
      redis.call('HDEL', KEYS[4], host)
    end
    if count < tonumber(ARGV[5]) and redis.call('EXISTS', KEYS[6] .. host) == 1 then
      redis.call('ZADD', KEYS[3], 'GT', math.max(now, said_ms, tonumber(taken_ms)), host)
    end
    moved = moved + 1
  end
  ids[#ids + 1] = id
end
if moved > 0 then
  redis.call('HINCRBY', KEYS[2], 'appended', moved)
  redis.call('HINCRBY', KEYS[2], 'appended_urls', moved)
  redis.call('HINCRBY', KEYS[2], 'set_aside', moved)
end
return ids
