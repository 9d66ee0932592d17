-- list_hosts: list the hosts of some partitions that are due first, busy ones before all others.
-- KEYS[1] zset    ready      score = next fetch ms, member = host
-- KEYS[2] hash    busy       host -> URLs taken
-- KEYS[3] zset    snoozed    score = next fetch ms after a long back-off, 1e15 more if retired; member = host
-- KEYS[4] prefix  back:      + host: zset, order -> URL
-- KEYS[5] prefix  host:      + host: hash of the host; delay, failures, why
-- These five are repeated for each further partition.
-- ARGV[1] now_ms (0: this server's clock)    ARGV[2] state: busy, ready, waiting, snoozed, retired; '' for any
-- ARGV[3] name of a host or of a domain above it; '' for all    ARGV[4] most hosts listed
-- ARGV[5] most hosts looked at, without those of the last portion
-- Returns: {now_ms, 1 or 0 if ARGV[5] left out hosts, host, state, due ms, URLs queued, URLs taken, ms of its delay,
--           failures in a row, why, ...}. A busy host is due at 0.
-- Guarantee: changes nothing. No host comes twice.
-- Lost reply: repeated, it changes nothing.
-- Late: it changes nothing.
-- Cost: O(log hosts) for each partition and each host looked at; of most partitions, only the host that is due first.
-- Uses: prelude/now_ms
local now, state, name = now_ms(ARGV[1]), ARGV[2], ARGV[3]
local most, left = tonumber(ARGV[4]), tonumber(ARGV[5])
local later = string.format('%.0f', now + 1) -- scores have fractions
-- What is read of the heaps ready and snoozed.
local in_ready = ({[''] = {'-inf', '+inf'}, ready = {'-inf', '(' .. later}, waiting = {later, '+inf'}})[state]
local in_snoozed = ({[''] = {later, '+inf'}, snoozed = {later, '(1e15'}, retired = {'1e15', '+inf'}})[state]
local found, heads, portion = {}, {}, 4

local function add(host, due, KEYS, is_ready)
  left = left - 1
  if name == '' or host == name or string.sub(host, -#name - 1) == '.' .. name then
    local what = due == 0 and 'busy' or is_ready and (due < now + 1 and 'ready' or 'waiting')
    found[#found + 1] = {host, what or due < 1e15 and 'snoozed' or 'retired', due, KEYS}
  end
end

-- Drop what is not among the first; return the time until which a host is among them.
local function keep_first()
  table.sort(found, function(one, other)
    return one[3] < other[3] or one[3] == other[3] and one[1] < other[1]
  end)
  for i = #found, most + 1, -1 do
    found[i] = nil
  end
  return #found >= most and found[most][3] or math.huge
end

local function read_portion(head)
  local KEYS, from, is_ready = head.partition, head.from, head.range == in_ready
  local low, high = head.range[1], head.range[2]
  local rows = redis.call('ZRANGEBYSCORE', head.heap, low, high, 'WITHSCORES', 'LIMIT', from, portion)
  for i = 1, #rows, 2 do
    local host = rows[i]
    local asleep = is_ready and KEYS.has_snoozed and tonumber(redis.call('ZSCORE', KEYS[3], host) or 0) or 0
    if asleep <= now and not (is_ready and redis.call('HGET', KEYS[2], host)) then
      add(host, tonumber(rows[i + 1]), KEYS, is_ready)
    end
  end
  head.from, head.due = from + portion, #rows < 2 * portion and math.huge or tonumber(rows[#rows])
end

local function add_head(heap, range, KEYS)
  local head = redis.call('ZRANGEBYSCORE', heap, range[1], range[2], 'WITHSCORES', 'LIMIT', 0, 1)
  if head[1] then
    heads[#heads + 1] = {due = tonumber(head[2]), from = 0, partition = KEYS, heap = heap, range = range}
  end
end

local function add_partition(KEYS)
  KEYS.has_snoozed = redis.call('EXISTS', KEYS[3]) == 1
  if #found < most and (state == '' or state == 'busy') then
    for _, host in ipairs(redis.call('HKEYS', KEYS[2])) do
      add(host, 0, KEYS)
    end
  end
  if in_ready then
    add_head(KEYS[1], in_ready, KEYS)
  end
  if in_snoozed and KEYS.has_snoozed then
    add_head(KEYS[3], in_snoozed, KEYS)
  end
end

for from = 1, #KEYS, 5 do
  local its = {}
  for at = 1, 5 do
    its[at] = KEYS[from + at - 1]
  end
  add_partition(its)
end
table.sort(heads, function(one, other)
  return one.due < other.due
end)
portion = math.max(portion, math.ceil(most / math.max(1, #heads)))
local last, has_read = keep_first(), true
while has_read and left > 0 do
  has_read = false
  for _, head in ipairs(heads) do
    if head.due < last and left > 0 then
      read_portion(head)
      has_read = true
      if #found >= 2 * most then
        last = keep_first()
      end
    end
  end
  last = keep_first()
end
local reply = {now, left > 0 and 1 or 0}
for _, row in ipairs(found) do
  local host, what, due, KEYS = row[1], row[2], row[3], row[4]
  local record = redis.call('HMGET', KEYS[5] .. host, 'delay', 'failures', 'why')
  for _, value in ipairs({
    host, what, string.format('%.0f', due), redis.call('ZCARD', KEYS[4] .. host),
    tonumber(redis.call('HGET', KEYS[2], host) or 0) or 0, tonumber(record[1] or 0) or 0,
    tonumber(record[2] or 0) or 0, record[3] or '',
  }) do
    reply[#reply + 1] = value
  end
end
return reply
