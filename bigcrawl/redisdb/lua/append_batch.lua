-- append_batch: put one batch of discovered URLs into a partition's inbox, once.
-- KEYS[1] stream  inbox      field b = encoded batch, field e = edges
-- KEYS[2] prefix  sender:    + node: string, number of the last batch accepted from it; kept a day
-- KEYS[3] hash    state      appended = batches, appended_urls = URLs ever accepted
-- ARGV[1] node id    ARGV[2] batch number, counted by the node for this partition from 1    ARGV[3] batch
-- ARGV[4] URLs in the batch    ARGV[5] edges between pay-level domains, '' when there are none
-- Returns: 1 when appended, 0 when a batch of this or a higher number was here before.
-- Guarantee: a number is appended at most once; owner and epoch are not asked.
-- Lost reply: repeated with the same number, it changes nothing.
-- Cost: O(1).
local sender = KEYS[2] .. ARGV[1]
if tonumber(ARGV[2]) <= tonumber(redis.call('GET', sender) or '0') then
  return 0
end
if ARGV[5] == '' then
  redis.call('XADD', KEYS[1], '*', 'b', ARGV[3])
else
  redis.call('XADD', KEYS[1], '*', 'b', ARGV[3], 'e', ARGV[5])
end
redis.call('SET', sender, ARGV[2], 'EX', 86400)
redis.call('HINCRBY', KEYS[3], 'appended', 1)
redis.call('HINCRBY', KEYS[3], 'appended_urls', ARGV[4])
return 1
