-- claim_start: let one node at a time run a spider's start requests, and another one if it dies.
-- KEYS[1] hash  crawl    start:<digest> = done \n since ms, or node \n lease ms; finished
-- ARGV[1] now_ms (0: this server's clock)    ARGV[2] node id    ARGV[3] digest of spider and arguments
-- ARGV[4] lease ms    ARGV[5] 1: claim or renew; 2: all start requests are in the inboxes; 3: give up the claim
-- Returns: 1 if this node has the claim, 0 if another node or none has it, 2 if the start requests are done.
-- Guarantee: one node at a time has the claim. A new claim retracts the announcement that the crawl is finished. The
--            latest 64 other digests are remembered. The requests of a forgotten one run again, but its URLs are seen.
-- Lost reply: repeated, it changes nothing more.
-- Late: now_ms is the time of sending, so no later renewal is undone. A node that gave up the claim has it again for
--       less than a lease from then. Node ids are used once, so no other node is affected.
-- Cost: O(fields of the hash) for the first claim and for the end of a start, else O(1).
-- Uses: prelude/now_ms
local now = now_ms(ARGV[1])
local field = 'start:' .. ARGV[3]
local value = redis.call('HGET', KEYS[1], field)
local function forget_old()
  local fields = redis.call('HGETALL', KEYS[1])
  local others = {}
  for i = 1, #fields, 2 do
    if fields[i] ~= field and string.sub(fields[i], 1, 6) == 'start:' then
      local node, since_ms = string.match(fields[i + 1], '^([^\n]*)\n?(.*)$')
      since_ms = tonumber(since_ms) or 0
      if node == 'done' then
        others[#others + 1] = {since_ms, fields[i]}
      elseif since_ms <= now then -- its node is dead
        redis.call('HDEL', KEYS[1], fields[i])
      end
    end
  end
  table.sort(others, function(a, b) return a[1] > b[1] end)
  for i = 65, #others do
    redis.call('HDEL', KEYS[1], others[i][2])
  end
end
if value and string.match(value, '^[^\n]*') == 'done' then
  return 2
end
local until_ms = now + tonumber(ARGV[4])
if value then
  local node, lease_ms = string.match(value, '^([^\n]*)\n(.*)$')
  if node ~= ARGV[2] and tonumber(lease_ms) > now then
    return 0
  end
  until_ms = node == ARGV[2] and math.max(until_ms, tonumber(lease_ms)) or until_ms
end
if ARGV[5] == '2' then
  redis.call('HSET', KEYS[1], field, 'done\n' .. string.format('%.0f', now))
  forget_old()
  return 2
end
if ARGV[5] == '3' then
  redis.call('HDEL', KEYS[1], field)
  return 0
end
if not value then
  forget_old()
end
redis.call('HSET', KEYS[1], field, ARGV[2] .. '\n' .. string.format('%.0f', until_ms))
redis.call('HDEL', KEYS[1], 'finished')
return 1
