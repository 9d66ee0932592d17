-- set_aside_urls: move taken URLs back to their partition's inbox, unfetched. The owner's next step keeps them on disk.
-- KEYS[1] hash    owner      node, epoch, generation
-- KEYS[2] hash    state      appended_urls, set_aside = all URLs set aside, moved = all moved back, with these
-- KEYS[3] zset    ready      score = next fetch ms, member = host
-- KEYS[4] hash    busy       host -> URLs taken
-- KEYS[5] hash    taken      seq -> host \n taken-at ms \n order \n member
-- KEYS[6] prefix  back:      + host: zset, score = order, member = "<seq>:..."
-- KEYS[7] prefix  host:      + host: hash, next = next allowed fetch ms
-- KEYS[8] stream  inbox      field b = encoded batch
-- ARGV[1] now_ms (0: this server's clock)    ARGV[2] node id    ARGV[3] epoch    ARGV[4] generation
-- ARGV[5] connections of a host
-- ARGV[6...] per URL: seq, batch with this one URL
-- Returns: {id of each URL's inbox entry, '' if it was not taken}; -1 if another node owns the partition,
--          -3 if it was reconciled since the call was made.
-- Guarantee: a URL is either taken or in the inbox. Its host's next fetch time does not change.
-- Lost reply: a repeat skips URLs that are no longer taken.
-- Late: refused, because the reconciliation after a lost reply raised the generation.
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
    local stored_ms = tonumber(redis.call('HGET', KEYS[7] .. host, 'next') or '0')
    id = redis.call('XADD', KEYS[8], '*', 'b', ARGV[i + 1])
    redis.call('HDEL', KEYS[5], ARGV[i])
    local count = redis.call('HINCRBY', KEYS[4], host, -1)
    if count <= 0 then
      redis.call('HDEL', KEYS[4], host)
    end
    if count < tonumber(ARGV[5]) and redis.call('EXISTS', KEYS[6] .. host) == 1 then
      redis.call('ZADD', KEYS[3], 'GT', math.max(now, stored_ms, tonumber(taken_ms)), host)
    end
    moved = moved + 1
  end
  ids[#ids + 1] = id
end
if moved > 0 then
  redis.call('HINCRBY', KEYS[2], 'appended_urls', moved)
  redis.call('HINCRBY', KEYS[2], 'set_aside', moved)
  redis.call('HINCRBY', KEYS[2], 'moved', moved)
end
return ids
