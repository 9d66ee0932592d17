-- record_rewind: count the URLs that Redis has forgotten, and make unseen those that are in no place any more.
-- KEYS[1] hash    owner      node, epoch, generation
-- KEYS[2] hash    state      readmitted, lost = URLs
-- KEYS[3] stream  inbox      field f = packed 8-byte keys of URLs to forget
-- ARGV[1] node id    ARGV[2] epoch    ARGV[3] generation    ARGV[4] URLs readmitted, which are offered again
-- ARGV[5] packed keys of the lost ones
-- Returns: 1; -1 if another node owns the partition, -3 if it was reconciled since the call was made.
-- Guarantee: lost URLs are counted only when their keys are in the inbox.
-- Lost reply: a repeat counts again; forgetting again does no harm.
-- Late: refused, because the reconciliation after a lost reply raised the generation.
-- Cost: O(bytes of the keys).
-- Uses: prelude/refusal
local refused = refusal(KEYS[1], ARGV[1], ARGV[2], ARGV[3])
if refused then
  return refused
end
if ARGV[5] ~= '' then
  redis.call('XADD', KEYS[3], '*', 'f', ARGV[5])
  redis.call('HINCRBY', KEYS[2], 'lost', #ARGV[5] / 8)
end
redis.call('HINCRBY', KEYS[2], 'readmitted', ARGV[4])
return 1
