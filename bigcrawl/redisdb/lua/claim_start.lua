-- claim_start: let one node at a time run a spider's start requests, and the next one when it dies.
-- KEYS[1] hash  crawl    start:<digest> = done, or node \n lease ms; finished
-- ARGV[1] now_ms (0: this server's clock)    ARGV[2] node id    ARGV[3] digest of spider and arguments
-- ARGV[4] lease ms    ARGV[5] 1 to claim or renew, 2 to say that all start requests are in the inboxes,
--         3 to give it up undone
-- Returns: 1 when the start is this node's, 0 when another node runs it or nobody does, 2 when it is done.
-- Guarantee: one node at a time; a start never done before takes back the word that the crawl is finished.
-- Lost reply: repeated, it changes nothing more.
-- Cost: O(1).
local now = tonumber(ARGV[1])
if now == 0 then
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
local field = 'start:' .. ARGV[3]
local value = redis.call('HGET', KEYS[1], field)
if value == 'done' then
  return 2
end
if value then
  local node, lease_ms = string.match(value, '^([^\n]*)\n(.*)$')
  if node ~= ARGV[2] and tonumber(lease_ms) > now then
    return 0
  end
end
if ARGV[5] == '2' then
  redis.call('HSET', KEYS[1], field, 'done')
  return 2
end
if ARGV[5] == '3' then
  redis.call('HDEL', KEYS[1], field)
  return 0
end
redis.call('HSET', KEYS[1], field, ARGV[2] .. '\n' .. string.format('%.0f', now + tonumber(ARGV[4])))
redis.call('HDEL', KEYS[1], 'finished')
return 1
