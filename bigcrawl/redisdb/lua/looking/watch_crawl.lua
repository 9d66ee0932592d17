-- watch_crawl: let nodes send what they do for a while, and read what they sent last.
-- KEYS[1] hash  crawl      record
-- KEYS[2] hash  control    watched = ms until which somebody watches; watched_host = ms and host
-- KEYS[3] hash  recent     node id -> JSON of its last fetches, items and lines of the log
-- KEYS[4] hash  delays     host or PLD -> JSON of its delays, set by hand
-- KEYS[5] hash  blacklist  host, PLD, pattern or range -> 1; 0 removes an entry of the settings
-- ARGV[1] until ms    ARGV[2] host that is watched; '' for none
-- Returns: {{node id, JSON, ...}, {field, value, ...} of delays, {field, value, ...} of blacklist}; the last two are
--          empty without a host.
-- Guarantee: writes nothing but the two fields of control, and these only if there is the crawl and its server takes
--            writes.
-- Lost reply: repeated, it writes the same again.
-- Late: the time may be one that is over.
-- Cost: O(nodes); with a host, O(delays + blacklist) more.
local is_host = ARGV[2] ~= ''
if redis.call('EXISTS', KEYS[1]) == 1 then
  redis.pcall('HSET', KEYS[2], 'watched', ARGV[1])
  if is_host then
    redis.pcall('HSET', KEYS[2], 'watched_host', ARGV[1] .. ' ' .. ARGV[2])
  end
end
return {
  redis.call('HGETALL', KEYS[3]), is_host and redis.call('HGETALL', KEYS[4]) or {},
  is_host and redis.call('HGETALL', KEYS[5]) or {},
}
