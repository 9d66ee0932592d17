-- claim_partition: become the owner of a partition that nobody owns, or whose owner is dead.
-- KEYS[1] hash    owner      node, epoch, lease_ms, token
-- KEYS[2] hash    state      hot, admitted, committed
-- KEYS[3] zset    ready      score = next fetch ms, member = host
-- KEYS[4] hash    busy       host -> URLs taken
-- KEYS[5] hash    taken      seq -> host \n taken-at ms \n order \n member
-- KEYS[6] prefix  back:      + host: zset, score = order, member = "<seq>:..."
-- KEYS[7] stream  inbox
-- ARGV[1] now_ms (0: this server's clock)    ARGV[2] node id    ARGV[3] token: what proves the node's death
-- ARGV[4] lease_ms    ARGV[5] epoch_min: epochs continue above it    ARGV[6] token of an owner known dead, or ''
-- ARGV[7] fetch deadline ms    ARGV[8] host delay ms
-- Returns: {1, epoch, last admitted batch, last inbox id, URLs returned, 1 if Redis knows it as committed}
--          or {0, lease left in ms, owner's node id, owner's token}.
-- Guarantee: a live owner is never fenced; the new epoch is above every earlier one. Every taken URL is back in
--            its host's queue at its old place; its host waits its delay, and the fetch deadline before that
--            when the owner is not known to be dead.
-- Lost reply: a repeat by the same node makes one more epoch and changes nothing else.
-- Cost: O(taken * log hosts).
local now = tonumber(ARGV[1])
if now == 0 then
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
local owner = redis.call('HMGET', KEYS[1], 'node', 'epoch', 'lease_ms', 'token')
local known_dead = ARGV[6] ~= '' and owner[4] == ARGV[6]
local left = tonumber(owner[3] or '0') - now
if owner[1] and owner[1] ~= ARGV[2] and left > 0 and not known_dead then
  return {0, left, owner[1], owner[4] or ''}
end
local epoch = math.max(tonumber(owner[2] or '0'), tonumber(ARGV[5])) + 1
local inbox_id = '0-0'
if redis.call('EXISTS', KEYS[7]) == 1 then
  local info = redis.call('XINFO', 'STREAM', KEYS[7])
  for i = 1, #info, 2 do
    if info[i] == 'last-generated-id' then
      inbox_id = info[i + 1]
    end
  end
end
local state = redis.call('HMGET', KEYS[2], 'admitted', 'committed')
local quiet_ms = tonumber(ARGV[8])
if not (known_dead or owner[1] == ARGV[2]) then
  quiet_ms = quiet_ms + tonumber(ARGV[7])
end
local taken = redis.call('HGETALL', KEYS[5])
local hot = 0
for i = 2, #taken, 2 do
  local host, taken_ms, order, member = string.match(taken[i], '^([^\n]*)\n([^\n]*)\n([^\n]*)\n(.*)$')
  hot = hot + redis.call('ZADD', KEYS[6] .. host, order, member)
  -- Taken-at lies ahead when the URL was taken before its host was due.
  local from_ms = known_dead and math.max(now, tonumber(taken_ms)) or tonumber(taken_ms)
  redis.call('ZADD', KEYS[3], 'GT', math.max(now, from_ms + quiet_ms), host)
end
redis.call('HINCRBY', KEYS[2], 'hot', hot)
redis.call('DEL', KEYS[4], KEYS[5])
redis.call('HSET', KEYS[1], 'node', ARGV[2], 'epoch', epoch, 'lease_ms', now + tonumber(ARGV[4]), 'token', ARGV[3])
redis.call('HDEL', KEYS[1], 'wanted_by')
return {1, epoch, tonumber(state[1] or '0'), inbox_id, #taken / 2, tonumber(state[2] or '0')}
