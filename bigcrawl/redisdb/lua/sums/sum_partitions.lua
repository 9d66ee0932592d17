-- sum_partitions: sum the figures of some partitions.
-- KEYS[1] hash    owner      node, epoch, lease_ms
-- KEYS[2] hash    state
-- KEYS[3] zset    ready      score = next fetch ms, member = host
-- KEYS[4] hash    busy       host -> URLs taken
-- KEYS[5] hash    taken
-- KEYS[6] stream  inbox
-- KEYS[7] zset    snoozed    score = next fetch ms after a long back-off, 1e15 more if retired; member = host
-- KEYS[8] prefix  host:      + host: hash of the host; failures, why
-- KEYS[9] hash    leases:    node -> its block lease, see renew_block_leases; absent on a cluster
-- These nine are repeated for each further partition.
-- ARGV[1] now_ms (0: this server's clock)
-- Returns: {now_ms, {name, sum, ...}, {field of state, sum, ...}, {node, partitions with a lease of it, ...}, {place of
--           each partition with rejected entries, ...}, place of the first partition that is not empty or 0, {host that
--           is due first, ms, failures, why} or {}, {mark of the rules by which a partition withholds URLs, ...}}.
--           Places begin with 1. Nodes without a lease are named with 0; a partition without a mark has 0.
-- Guarantee: changes nothing. All partitions are seen at the same moment. urls_uncounted is the difference between seen
--            URLs and those in some place; it is 0 unless URLs are lost. Of a partition with damaged or missing files,
--            only its state's fields and the URLs that wait there are summed, and it counts as empty. Inbox entries
--            that no committed step has merged are looked up, and summed, only if the partition's back queues are
--            empty.
-- Lost reply: repeated, it changes nothing.
-- Late: it changes nothing.
-- Cost: for each partition O(log hosts + fields of state).
-- Uses: prelude/now_ms, prelude/last_entry_id, prelude/lease_end
local now = now_ms(ARGV[1])
local due_scores, snoozed_from = string.format('(%.0f', now + 1), string.format('%.0f', now)
local sums = {
  hosts_ready = 0, hosts_waiting = 0, hosts_busy = 0, hosts_snoozed = 0, hosts_retired = 0, urls_inbox = 0,
  urls_disk = 0, urls_queued = 0, urls_taken = 0, urls_damaged = 0, urls_missing = 0, inboxes_unfolded = 0,
  batches_pending = 0, rows_untold = 0, urls_uncounted = 0,
}
local counts, owners, rejected, asked, first_with_work, soonest = {}, {}, {}, {}, 0, {}
local soonest_ms = math.huge

local function add(name, number)
  sums[name] = sums[name] + number
end

local function is_behind(id, later)
  if id == later then
    return false
  end
  local ms, counter = string.match(id, '^(%d+)%-?(%d*)$')
  local later_ms, later_counter = string.match(later, '^(%d+)%-?(%d*)$')
  ms, later_ms = tonumber(ms), tonumber(later_ms)
  return ms < later_ms or ms == later_ms and (tonumber(counter) or 0) < (tonumber(later_counter) or 0)
end

-- Most partitions of a large crawl have no host due, or none snoozed: counts are asked only if needed.
local function add_hosts(KEYS)
  local head = redis.call('ZRANGE', KEYS[3], 0, 0, 'WITHSCORES')
  local due, waiting, busy = 0, 0, redis.call('HLEN', KEYS[4])
  if head[1] then
    local ms = tonumber(head[2])
    due = ms < now + 1 and redis.call('ZCOUNT', KEYS[3], '-inf', due_scores) or 0
    waiting = redis.call('ZCARD', KEYS[3]) - due
    if ms < soonest_ms then
      soonest_ms, soonest = ms, {head[1], KEYS[8] .. head[1]}
    end
  end
  if redis.call('EXISTS', KEYS[7]) == 1 then
    add('hosts_snoozed', redis.call('ZCOUNT', KEYS[7], snoozed_from, '(1e15'))
    add('hosts_retired', redis.call('ZCOUNT', KEYS[7], '1e15', '+inf'))
  end
  add('hosts_ready', due)
  add('hosts_waiting', waiting)
  add('hosts_busy', busy)
  return due + waiting + busy
end

local function add_partition(KEYS, place)
  local owner = redis.call('HMGET', KEYS[1], 'node', 'epoch', 'lease_ms')
  if owner[1] and owner[1] ~= '' then
    local is_live = lease_end(KEYS[1], owner, KEYS[9]) > now
    owners[owner[1]] = (owners[owner[1]] or 0) + (is_live and 1 or 0)
  end
  local fields, state = redis.call('HGETALL', KEYS[2]), {}
  for i = 1, #fields, 2 do
    local name = fields[i]
    if name == 'folded' then
      state.folded = fields[i + 1]
    elseif name == 'asked' then
      state.asked = tonumber(fields[i + 1])
    elseif name ~= 'checkpoint' then
      local number = tonumber(fields[i + 1]) or 0
      state[name] = number
      counts[name] = (counts[name] or 0) + number
    end
  end
  local taken = redis.call('HLEN', KEYS[5])
  -- Committed batches that are not admitted yet; negative while their admission is not published.
  local pending_urls = (state.chosen_urls or 0) - (state.admitted_urls or state.admitted and state.chosen_urls or 0)
  local in_inbox = math.max(0, (state.appended_urls or 0) - (state.folded_urls or 0))
  local queued, on_disk = math.max(0, state.hot or 0), math.max(0, (state.waiting or 0) + pending_urls)
  if (state.rejected or 0) ~= 0 then
    rejected[#rejected + 1] = place
  end
  local is_damaged = (state.damaged or 0) ~= 0
  if is_damaged or (state.missing or 0) ~= 0 then
    add(is_damaged and 'urls_damaged' or 'urls_missing', in_inbox + on_disk + queued + taken)
    return
  end
  if state.repeats and not state.forgot and (state.begun_anew or 0) == 0 then
    local known = state.seen + state.repeats - state.imported
    local left = (state.ended or 0) + (state.moved or 0) + (state.lost or 0)
    local here = state.waiting + state.withheld + (state.unrunnable or 0) + pending_urls + (state.hot or 0) + taken
    add('urls_uncounted', math.abs(known - left - here))
  end
  local unfolded = queued == 0 and is_behind(state.folded or '0-0', last_entry_id(KEYS[6])) and 1 or 0
  local pending = (state.chosen or 0) > (state.admitted or 0) and 1 or 0
  add('urls_inbox', in_inbox)
  add('urls_disk', on_disk)
  add('urls_queued', queued)
  add('urls_taken', taken)
  add('inboxes_unfolded', unfolded)
  add('batches_pending', pending)
  add('rows_untold', state.untold or 0)
  if (state.withheld or 0) > 0 then
    asked[state.asked or 0] = true
  end
  local work = add_hosts(KEYS) + taken + on_disk + queued + unfolded + pending + (state.untold or 0)
  if work ~= 0 and first_with_work == 0 then
    first_with_work = place
  end
end

for from = 1, #KEYS, 9 do
  local its = {}
  for at = 1, 9 do
    its[at] = KEYS[from + at - 1]
  end
  add_partition(its, (from + 8) / 9)
end
if soonest[1] then
  local record = redis.call('HMGET', soonest[2], 'failures', 'why')
  soonest = {soonest[1], math.floor(soonest_ms), tonumber(record[1] or 0), record[2] or ''}
end
local function flat(map)
  local words = {}
  for name, number in pairs(map) do
    words[#words + 1] = name
    words[#words + 1] = number
  end
  return words
end
local marks = {}
for mark in pairs(asked) do
  marks[#marks + 1] = mark
end
return {now, flat(sums), flat(counts), flat(owners), rejected, first_with_work, soonest, marks}
