-- append_batch: put one batch of discovered URLs into a partition's inbox, once and in order.
-- KEYS[1] stream  inbox      field b = encoded batch, field e = edges
-- KEYS[2] prefix  sender:    + node: string, "session number" of the last batch accepted from it; kept a day
-- KEYS[3] hash    state      appended = batches, appended_urls = URLs ever accepted
-- ARGV[1] node id    ARGV[2] session, counted by the node for this partition from 1
-- ARGV[3] batch number, counted by the node for this session from 1    ARGV[4] batch
-- ARGV[5] URLs in the batch    ARGV[6] edges between pay-level domains, '' when there are none
-- Returns: the id of the inbox entry; 0 when the batch was here before, or a later session has begun;
--          -1 when an earlier batch of the session is missing.
-- Guarantee: number n of a session is appended only after n-1 and only once, and nothing of a session after one of a
--            later session. Owner and epoch are not asked.
-- Lost reply: repeated with the same number, it changes nothing.
-- Late: as repeated, while the node's number is kept.
-- Cost: O(1).
local sender = KEYS[2] .. ARGV[1]
local session, number = tonumber(ARGV[2]), tonumber(ARGV[3])
local said_session, said_number = string.match(redis.call('GET', sender) or '0 0', '^(%d+) (%d+)$')
local last = tonumber(said_session) == session and tonumber(said_number) or 0
if session < tonumber(said_session) or number <= last then
  return 0
end
if number ~= last + 1 then
  return -1
end
local id
if ARGV[6] == '' then
  id = redis.call('XADD', KEYS[1], '*', 'b', ARGV[4])
else
  id = redis.call('XADD', KEYS[1], '*', 'b', ARGV[4], 'e', ARGV[6])
end
redis.call('SET', sender, ARGV[2] .. ' ' .. ARGV[3], 'EX', 86400)
redis.call('HINCRBY', KEYS[3], 'appended', 1)
redis.call('HINCRBY', KEYS[3], 'appended_urls', ARGV[5])
return id
