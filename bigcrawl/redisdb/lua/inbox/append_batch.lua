-- append_batch: append a node's batch of findings to a partition's inbox, once and in order.
-- KEYS[1] stream  inbox      field b = encoded batch of URLs, e = edges, c = observations
-- KEYS[2] prefix  sender:    + node: string, "session number" of the last batch accepted from it; kept for a day
-- KEYS[3] hash    state      appended_urls = all accepted URLs
-- ARGV[1] node id    ARGV[2] session, which the node counts from 1 for this partition
-- ARGV[3] batch number, which the node counts from 1 for this session    ARGV[4] batch; '' if it has no URLs
-- ARGV[5] URLs in the batch    ARGV[6] edges between pay-level domains; '' if there are none
-- ARGV[7] observed facts; '' if there are none
-- Returns: the id of the inbox entry; 0 if the batch had been appended, or a later session has begun;
--          -1 if an earlier batch of the session is missing.
-- Guarantee: number n of a session is appended only once, and only after n-1. Nothing of a session is appended after
--            a batch of a later session. Owner and epoch are not checked.
-- Lost reply: repeated with the same number, it changes nothing.
-- Late: like a repeat, as long as the node's number is kept.
-- Cost: O(1).
local sender = KEYS[2] .. ARGV[1]
local session, number = tonumber(ARGV[2]), tonumber(ARGV[3])
local before = redis.call('SET', sender, ARGV[2] .. ' ' .. ARGV[3], 'EX', 86400, 'GET')
if before ~= ARGV[2] .. ' ' .. number - 1 then -- the first batch, a repeat, or one after a loss
  local last_session, last_number = string.match(before or '0 0', '^(%d+) (%d+)$')
  local last = tonumber(last_session) == session and tonumber(last_number) or 0
  local is_late = session < tonumber(last_session) or number <= last
  if is_late or number ~= last + 1 then
    if before then
      redis.call('SET', sender, before, 'EX', 86400)
    else
      redis.call('DEL', sender)
    end
    return is_late and 0 or -1
  end
end
if ARGV[5] ~= '0' then
  redis.call('HINCRBY', KEYS[3], 'appended_urls', ARGV[5])
end
local batch, edges, observed = ARGV[4], ARGV[6], ARGV[7]
if observed ~= '' then -- with it, unused fields are empty
  return redis.call('XADD', KEYS[1], '*', 'b', batch, 'e', edges, 'c', observed)
elseif edges ~= '' then
  return redis.call('XADD', KEYS[1], '*', 'b', batch, 'e', edges)
end
return redis.call('XADD', KEYS[1], '*', 'b', batch)
