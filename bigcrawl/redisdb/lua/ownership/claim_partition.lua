-- claim_partition: become the owner of a partition without an owner, or whose owner is dead.
-- KEYS[1] hash    owner      node, epoch, generation, lease_ms, token; server = run id of the Redis that knows all
--                            fetches of the owner; rest = until when hosts wait whose fetches might be unknown to Redis
-- KEYS[2] hash    state      hot, admitted, committed, forgot
-- KEYS[3] zset    ready      score = next fetch ms, and a fraction for the order in which hosts came; member = host
-- KEYS[4] hash    busy       host -> URLs taken
-- KEYS[5] hash    taken      seq -> host \n taken-at ms \n order \n member
-- KEYS[6] prefix  back:      + host: zset, score = order, member = "<seq>:..."
-- KEYS[7] stream  inbox
-- KEYS[8] prefix  host:      + host: hash, next = next allowed fetch ms; delay = its rest after its last fetch
-- KEYS[9] hash    deaths     seq -> deaths, those after its answer, and taken-at ms of a lone trial or 'alone'
-- KEYS[10] hash   leases:    node -> its block lease, see renew_block_leases; absent on a cluster
-- ARGV[1] now_ms (0: this server's clock)    ARGV[2] node id    ARGV[3] token that proves the node's death
-- ARGV[4] lease_ms    ARGV[5] epoch_min: epochs continue above it    ARGV[6] token of an owner known to be dead, or ''
-- ARGV[7] fetch deadline ms    ARGV[8] host delay ms
-- ARGV[9] generation: counts this node's claims and reconciliations
-- ARGV[10] token of the owner that ARGV[11] is about; '': there was none; '*': any
-- ARGV[11] its URLs in process: " <seq>f" for each being fetched, " <seq>a" for each answered; '*': unknown
-- ARGV[12] run id of this server, or '' if this node made all fetches of the last epoch itself, and no others can be
--          under way
-- ARGV[13] abort ms: so long after the end of its lease, an owner that might be alive has given up its fetches
-- ARGV[14] forgotten ms: so long from now, a forgotten owner has given up its fetches
-- Returns: {1, epoch, last admitted batch, last inbox id, URLs returned, 1 if Redis knows it as committed, deaths as
--          fields and values, rest} or {0, lease left ms, owner's node id, owner's token}. If no lease is left, the
--          owner had taken URLs, and ARGV[11] is not about it.
-- Guarantee: a live owner is never fenced. The new epoch is above every earlier one. Every taken URL is back in its
--            host's queue at its old place. Its host waits its delay, or its rest after its last fetch if that was
--            longer. If the owner is not known to be dead, the wait begins when its fetches are over: at the fetch
--            deadline, or ARGV[13] after the end of its lease if that is sooner; for an owner that Redis has forgotten,
--            ARGV[14] from now. A taken URL gets one death more, unless it is known that no other node had it in
--            process. That death is a lone one if try_suspect has recorded a trial of this take. If Redis was restarted
--            in the last owner's time, it might have forgotten the last fetches, and each host waits as after a fetch
--            now.
-- Lost reply: a repeat by the same node, in its next generation, makes one more epoch and changes nothing else.
-- Late: refused if the node has claimed or reconciled since. A node that has left might own the partition for less than
--       a lease from the time of sending.
-- Cost: O(taken * log hosts), and O(hosts * log hosts) after a restart.
-- Uses: prelude/now_ms, prelude/keep_record, prelude/last_entry_id, prelude/read_taken, prelude/lease_end
local now = now_ms(ARGV[1])
local owner = redis.call('HMGET', KEYS[1], 'node', 'epoch', 'lease_ms', 'token', 'generation', 'server', 'rest')
local known_dead = ARGV[6] ~= '' and owner[4] == ARGV[6]
local ends_ms, others = lease_end(KEYS[1], owner, KEYS[10])
local left = ends_ms - now
if owner[1] and owner[1] ~= ARGV[2] and left > 0 and not known_dead then
  return {0, left, owner[1], owner[4] or ''}
end
if owner[1] == ARGV[2] and tonumber(owner[5] or '0') >= tonumber(ARGV[9]) then
  return {0, left, owner[1], owner[4] or ''}
end
local taken = redis.call('HGETALL', KEYS[5])
local has_died = owner[1] and owner[1] ~= ARGV[2]
local is_restarted = ARGV[12] ~= '' and ARGV[12] ~= owner[6]
if has_died and (#taken > 0 or is_restarted) and ARGV[10] ~= '*' and ARGV[10] ~= (owner[4] or '') then
  return {0, math.min(left, 0), owner[1], owner[4] or ''}
end
local function suspect(seq, taken_ms)
  local stage = string.match(ARGV[11], ' ' .. seq .. '(%a)')
  if ARGV[11] ~= '*' and not stage then
    return
  end
  local known = redis.call('HGET', KEYS[9], seq) or '0 0'
  local deaths, answered, tried_ms = string.match(known, '^(%d+) (%d+) ?(%w*)$')
  local is_alone = tried_ms == taken_ms
  deaths = deaths + 1
  answered = stage == 'a' and answered + 1 or is_alone and not stage and deaths or tonumber(answered)
  redis.call('HSET', KEYS[9], seq, deaths .. ' ' .. answered .. (is_alone and ' alone' or ''))
  redis.call('PEXPIRE', KEYS[9], 2592000000) -- for URLs that leave without an end
end
local epoch = math.max(tonumber(owner[2] or '0'), tonumber(ARGV[5])) + 1
local inbox_id = last_entry_id(KEYS[7])
local state = redis.call('HMGET', KEYS[2], 'admitted', 'committed')
local delay_ms = tonumber(ARGV[8])
-- The files have a later epoch than Redis: its owner is forgotten, and might be alive.
local is_forgotten = ARGV[12] ~= '' and tonumber(owner[2] or '0') < tonumber(ARGV[5])
local may_fetch = is_forgotten or not (known_dead or owner[1] == ARGV[2])
-- By then all fetches of an owner that might be alive are over. A restarted Redis might have forgotten renewals of its
-- lease, but none can come after the restart.
local over_ms = (is_restarted and now + tonumber(ARGV[4]) or ends_ms) + tonumber(ARGV[13])
if is_forgotten then
  over_ms = now + tonumber(ARGV[14])
end
local hot = 0
local records = {}
for i = 1, #taken, 2 do
  records[#records + 1] = {tonumber(taken[i]), taken[i + 1], taken[i]}
end
table.sort(records, function(a, b) return a[1] < b[1] end)
for i, record in ipairs(records) do
  local host, taken_ms, order, member = read_taken(record[2])
  hot = hot + redis.call('ZADD', KEYS[6] .. host, order, member)
  -- Taken-at is in the future if the URL was taken before its host was due.
  local from_ms = known_dead and math.max(now, tonumber(taken_ms)) or tonumber(taken_ms)
  local said = redis.call('HMGET', KEYS[8] .. host, 'next', 'delay')
  local rest_ms = math.max(tonumber(said[2] or '0'), delay_ms)
  if may_fetch then
    from_ms = math.min(from_ms + tonumber(ARGV[7]), over_ms)
  end
  local next_ms = math.max(now, from_ms + rest_ms, tonumber(said[1] or '0'))
  redis.call('ZADD', KEYS[3], 'GT', next_ms + i / 1024, host)
  redis.call('HSET', KEYS[8] .. host, 'next', next_ms)
  keep_record(KEYS[8] .. host, next_ms - now + 60000)
  if has_died then
    suspect(record[3], taken_ms)
  end
end
redis.call('HINCRBY', KEYS[2], 'hot', hot)
redis.call('DEL', KEYS[4], KEYS[5])
if is_restarted then
  if owner[1] or is_forgotten then
    local from_ms = now
    if may_fetch then
      from_ms = math.min(now + tonumber(ARGV[7]), over_ms)
    end
    redis.call('HSET', KEYS[2], 'forgot', 1)
    redis.call('HSET', KEYS[1], 'rest', math.max(from_ms + delay_ms, tonumber(owner[7] or '0')))
    for i, host in ipairs(redis.call('ZRANGE', KEYS[3], 0, -1)) do
      local rest_ms = math.max(tonumber(redis.call('HGET', KEYS[8] .. host, 'delay') or '0'), delay_ms)
      redis.call('ZADD', KEYS[3], 'GT', from_ms + rest_ms + i / 1024, host)
    end
  end
  redis.call('HSET', KEYS[1], 'server', ARGV[12])
end
local lease_ms = now + tonumber(ARGV[4])
if others then
  redis.call('HSET', KEYS[10], owner[1], others) -- so that its next renewal finds the loss
end
redis.call('HSET', KEYS[1], 'node', ARGV[2], 'epoch', epoch, 'generation', ARGV[9])
redis.call('HSET', KEYS[1], 'lease_ms', lease_ms, 'token', ARGV[3])
local deaths = redis.call('HGETALL', KEYS[9])
local rest = redis.call('HGET', KEYS[1], 'rest') or '0'
return {1, epoch, tonumber(state[1] or '0'), inbox_id, #taken / 2, tonumber(state[2] or '0'), deaths, tonumber(rest)}
