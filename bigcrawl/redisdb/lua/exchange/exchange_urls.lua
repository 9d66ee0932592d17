-- exchange_urls: acknowledge, fail or return taken URLs, then give the owner URLs of hosts that it paces itself, and of
-- hosts due within the horizon.
-- KEYS[1] hash    owner      node, epoch, generation
-- KEYS[2] hash    state      hot = URLs in back queues, ended, and counters named in ARGV
-- KEYS[3] zset    ready      score = next fetch ms, plus a fraction for the order in which hosts came; member = host
-- KEYS[4] hash    busy       host -> URLs taken
-- KEYS[5] hash    taken      seq -> host \n taken-at ms \n order \n member
-- KEYS[6] prefix  back:      + host: zset, score = order, member = "<seq>:..."
-- KEYS[7] prefix  host:      + host: hash, next = next allowed fetch ms; delay = its rest after its last fetch, if that
--                            was longer than usual; failures = in a row, why = the last one, failed = when that one
--                            was counted, ms
-- KEYS[8] stream  inbox      fields o = outcomes, v = timed URLs
-- KEYS[9] zset    snoozed    score = next fetch ms after a long back-off, 1e15 more if retired; member = host
-- ARGV[1] now_ms (0: this server's clock)    ARGV[2] node id    ARGV[3] epoch    ARGV[4] generation
-- ARGV[5] connections of a host    ARGV[6] most URLs to take    ARGV[7] horizon ms
-- ARGV[8] host delay ms: for hosts without a delay of their own, and between starts on a host's connections
-- ARGV[9] outcomes of the acknowledged URLs; '' if there are none
-- ARGV[10] timed: those of the acknowledged URLs that come again at a time, encoded; '' if there are none
-- ARGV[11] number of hosts of which URLs are taken ahead of their turns
-- ARGV[12...] host, most URLs, of each of these; per ended URL: seq; delay ms of its host; new member ('' acknowledges
--            the URL, '=' returns it unchanged, else the next try of a failed URL); counter to raise ('' for none);
--            bytes to add to the counter bytes; health of its host ('+': it answered, '': unknown, otherwise why it
--            failed); order of the URL from now on ('' for the old one); for a failed host: first back-off ms, longest
--            ms, thousandths to add, failures that retire it (0: none); ms of the delay that have already passed
-- Returns: {now_ms, next due ms of the partition or -1, URLs ended, URLs taken ahead, host, due ms, member, ...}, those
--          taken ahead first, then by their due times;
--          {-1} if another node owns the partition, {-3} if it was reconciled since the call was made.
-- Guarantee: a URL is in its back queue or taken, never both. An acknowledged URL is gone. A returned or failed one is
--            at the given order, or at its old one, which puts it first among equals. A host with waiting URLs is ready
--            or busy. One with ARGV[5] URLs taken is not ready. It gives further ones only ahead, to a node that paces
--            it, and none if its next fetch time is beyond the horizon.
--            A host's next fetch time never moves back. Its record lives for at least a minute after that time, and for
--            four times its back-off if it has failed.
--            A URL is acknowledged if and only if its outcome is in the inbox, with its revisit if it has one.
--            Each failure in a row multiplies the back-off by four, whichever URL and node had it. An answer ends the
--            back-off. A fetch that began before the last counted failure counts no further one. A retired host is
--            never due. At most 2048 hosts of a partition are snoozed or retired. Above that, the failures of the
--            snoozed host due first are forgotten, and then those of the host retired first.
-- Lost reply: a repeat skips an ended URL, and appends its outcome and its revisit once more. A taken one stays taken
--             until reconcile_partition returns it.
-- Late: refused, because the reconciliation after a lost reply raised the generation.
-- Cost: O(URLs * log hosts).
-- Uses: prelude/now_ms, prelude/refusal, prelude/keep_record, prelude/read_taken, prelude/call_many, prelude/ask_many
local refused = refusal(KEYS[1], ARGV[2], ARGV[3], ARGV[4])
if refused then
  return {refused}
end
local never_ms, long_ms, snoozed_max = 1e15, 60000, 2048
local longest_ms = 3600000 -- that a URL is in process, unless the deadline is very high
local now = now_ms(ARGV[1])
local connections, usual_ms = tonumber(ARGV[5]), tonumber(ARGV[8])
local ended_count, hot = 0, 0
local raised = {ended = 0} -- fields of the state, and by how much
local snoozes = 0 -- changes at which the owner must look
-- A key with values of many hosts or URLs is read once and written once: a command costs more than its work.
local was_busy, busy = {}, {} -- URLs taken of each host of this call, before and after
local function read_busy(hosts)
  for i, count in ipairs(ask_many('HMGET', KEYS[4], hosts)) do
    if not busy[hosts[i]] then
      busy[hosts[i]] = tonumber(count or '0')
      was_busy[hosts[i]] = busy[hosts[i]]
    end
  end
end
if ARGV[10] ~= '' then
  redis.call('XADD', KEYS[8], '*', 'o', ARGV[9], 'v', ARGV[10])
elseif ARGV[9] ~= '' then
  redis.call('XADD', KEYS[8], '*', 'o', ARGV[9])
end
local ahead_end = 11 + 2 * tonumber(ARGV[11])
if #ARGV > ahead_end then
  local seqs, hosts, records = {}, {}, {}
  for i = ahead_end + 1, #ARGV, 12 do
    seqs[#seqs + 1] = ARGV[i]
  end
  for i, record in ipairs(ask_many('HMGET', KEYS[5], seqs)) do
    if record and not records[seqs[i]] then
      records[seqs[i]] = record
      hosts[#hosts + 1] = read_taken(record)
    end
  end
  read_busy(hosts)
  local untaken, due_again = {}, {}
  for i = ahead_end + 1, #ARGV, 12 do
    local record = records[ARGV[i]]
    if record then
      records[ARGV[i]] = nil
      untaken[#untaken + 1] = ARGV[i]
      local host, taken_at, order, member = read_taken(record)
      local taken_ms = tonumber(taken_at)
      local host_record, back, health = KEYS[7] .. host, KEYS[6] .. host, ARGV[i + 5]
      local delay_ms = tonumber(ARGV[i + 1])
      local stored = redis.call('HMGET', host_record, 'next', 'failures', 'delay', 'failed')
      local stored_ms, wait_ms, is_well = tonumber(stored[1] or '0'), 0, false
      if health == '+' then
        if stored[2] then
          redis.call('HDEL', host_record, 'failures', 'why', 'failed')
          snoozes = snoozes + redis.call('ZREM', KEYS[9], host)
          is_well = stored_ms >= never_ms
          stored_ms = is_well and 0 or stored_ms
        end
      elseif health ~= '' and taken_ms >= tonumber(stored[4] or '0') then -- a failure that is not yet counted
        local failures = redis.call('HINCRBY', host_record, 'failures', 1)
        redis.call('HSET', host_record, 'why', health, 'failed', now)
        wait_ms = math.min(tonumber(ARGV[i + 7]) * 4 ^ math.min(failures - 1, 40), tonumber(ARGV[i + 8]))
        wait_ms = math.floor(wait_ms * (1 + tonumber(ARGV[i + 9]) / 1000))
        local failures_max = tonumber(ARGV[i + 10])
        if failures_max > 0 and failures >= failures_max then
          wait_ms = never_ms
        end
        if wait_ms >= long_ms then
          snoozes = snoozes + 1
          redis.call('ZADD', KEYS[9], now + wait_ms, host)
        end
      end
      -- Taken-at is in the future if the URL is returned before its host was due.
      local next_ms = math.max(now + math.max(delay_ms - tonumber(ARGV[i + 11]), wait_ms), stored_ms, taken_ms)
      local count = math.max(busy[host] - 1, 0)
      busy[host] = count
      ended_count = ended_count + 1
      if ARGV[i + 2] == '' then
        raised.ended = raised.ended + 1
      else
        local new_order = ARGV[i + 6] ~= '' and ARGV[i + 6] or order
        hot = hot + redis.call('ZADD', back, new_order, ARGV[i + 2] == '=' and member or ARGV[i + 2])
      end
      local counter = ARGV[i + 3]
      if counter ~= '' then
        raised[counter] = (raised[counter] or 0) + 1
        raised.bytes = (raised.bytes or 0) + tonumber(ARGV[i + 4])
      end
      local longer_ms = health ~= '' and math.max(delay_ms, wait_ms) or 0
      if longer_ms > usual_ms and longer_ms < never_ms then
        redis.call('HSET', host_record, 'next', next_ms, 'delay', longer_ms)
      else
        redis.call('HSET', host_record, 'next', next_ms)
        if stored[3] and health ~= '' then
          redis.call('HDEL', host_record, 'delay')
        end
      end
      local rest_ms = health ~= '+' and (wait_ms > 0 or stored[2]) and next_ms - now or 0 -- of a failing host
      if wait_ms == 0 and rest_ms >= long_ms then
        snoozes = snoozes + redis.call('ZADD', KEYS[9], next_ms, host)
      end
      -- Renewed once a minute, not for each URL.
      if rest_ms > 0 or math.floor(next_ms / 60000) ~= math.floor(stored_ms / 60000) then
        -- A failing host is remembered for longer, because its next URL might come late; but not too long, because
        -- many hosts fail once.
        keep_record(host_record, next_ms - now + 120000 + 4 * math.min(rest_ms, 86400000))
      end
      if count < connections and redis.call('EXISTS', back) == 1 then
        local score = next_ms + #untaken / 1024
        if is_well then
          redis.call('ZADD', KEYS[3], score, host)
        end
        due_again[#due_again + 1] = score
        due_again[#due_again + 1] = host
      end
    end
  end
  call_many('HDEL', KEYS[5], untaken)
  call_many('ZADD', KEYS[3], due_again, 'GT')
end
if snoozes > 0 then
  raised.snoozes = snoozes
  local over = redis.call('ZCARD', KEYS[9]) - snoozed_max
  local forgotten = over > 0 and redis.call('ZRANGE', KEYS[9], 0, over - 1, 'WITHSCORES') or {}
  for i = 1, #forgotten, 2 do
    local host = forgotten[i]
    redis.call('ZREM', KEYS[9], host)
    redis.call('HDEL', KEYS[7] .. host, 'failures', 'why', 'failed')
    if tonumber(forgotten[i + 1]) >= never_ms then
      redis.call('HSET', KEYS[7] .. host, 'next', now)
      redis.call('PEXPIRE', KEYS[7] .. host, 120000)
      redis.call('ZADD', KEYS[3], 'XX', now, host)
    end
  end
end
local reply = {now, -1, ended_count, 0}
if ARGV[6] ~= '0' or ahead_end > 11 then
  local taken, later, unready, hosts = {}, {}, {}, {}
  local until_ms = now + tonumber(ARGV[7])
  -- Record that a URL was taken from a host's queue; ZPOPMIN's answer has it from i on.
  local function take(host, due_ms, popped, i)
    local start_ms = math.max(now, due_ms)
    taken[#taken + 1] = string.match(popped[i], '^%d+')
    taken[#taken + 1] = host .. '\n' .. start_ms .. '\n' .. popped[i + 1] .. '\n' .. popped[i]
    busy[host] = busy[host] + 1
    hot = hot - 1
    reply[#reply + 1] = host
    reply[#reply + 1] = due_ms
    reply[#reply + 1] = popped[i]
    return start_ms
  end
  -- Kept while a URL is in process, because a claim of the partition reads it.
  local function keep_delay(host_record)
    if redis.call('HEXISTS', host_record, 'delay') == 1 then
      keep_record(host_record, longest_ms)
    end
  end
  for i = 12, ahead_end, 2 do
    hosts[#hosts + 1] = ARGV[i]
  end
  read_busy(hosts)
  for i = 12, ahead_end, 2 do
    local host, back, host_record = ARGV[i], KEYS[6] .. ARGV[i], KEYS[7] .. ARGV[i]
    local next_ms = tonumber(redis.call('HGET', host_record, 'next') or '0')
    if next_ms <= until_ms then
      local popped = redis.call('ZPOPMIN', back, ARGV[i + 1])
      for j = 1, #popped, 2 do
        take(host, next_ms, popped, j)
        reply[4] = reply[4] + 1
      end
      if #popped > 0 then
        keep_delay(host_record)
        if busy[host] >= connections or redis.call('EXISTS', back) == 0 then
          redis.call('ZREM', KEYS[3], host)
        end
      end
    end
  end
  local due = {}
  if ARGV[6] ~= '0' then
    local beyond = string.format('(%.0f', until_ms + 1) -- the fraction of a score only orders hosts
    due = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', beyond, 'WITHSCORES', 'LIMIT', 0, ARGV[6])
  end
  hosts = {}
  for i = 1, #due, 2 do
    hosts[#hosts + 1] = due[i]
  end
  read_busy(hosts)
  for i = 1, #due, 2 do
    local host, back = due[i], KEYS[6] .. due[i]
    local popped = redis.call('ZPOPMIN', back)
    local is_more_due = false
    if popped[1] then
      local start_ms = take(host, math.floor(tonumber(due[i + 1])), popped, 1)
      keep_delay(KEYS[7] .. host)
      if busy[host] < connections and redis.call('EXISTS', back) == 1 then
        is_more_due = true
        later[#later + 1] = start_ms + usual_ms + (i - 1) / 2 / 1024
        later[#later + 1] = host
      end
    end
    if not is_more_due then
      unready[#unready + 1] = host
    end
  end
  call_many('HSET', KEYS[5], taken)
  call_many('ZADD', KEYS[3], later)
  call_many('ZREM', KEYS[3], unready)
end
local counts, idle = {}, {}
for host, count in pairs(busy) do
  if count ~= was_busy[host] then
    if count > 0 then
      counts[#counts + 1] = host
      counts[#counts + 1] = count
    else
      idle[#idle + 1] = host
    end
  end
end
call_many('HSET', KEYS[4], counts)
call_many('HDEL', KEYS[4], idle)
local head = redis.call('ZRANGE', KEYS[3], 0, 0, 'WITHSCORES')
if head[2] then
  reply[2] = math.floor(tonumber(head[2]))
end
raised.hot = hot
local fields, values = {}, {}
for field, by in pairs(raised) do
  if by ~= 0 then
    fields[#fields + 1] = field
  end
end
for i, value in ipairs(ask_many('HMGET', KEYS[2], fields)) do
  values[2 * i - 1] = fields[i]
  values[2 * i] = tonumber(value or '0') + raised[fields[i]]
end
call_many('HSET', KEYS[2], values)
return reply
