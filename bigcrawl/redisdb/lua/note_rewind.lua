-- note_rewind: count what Redis has forgotten of a partition, and let what nobody has any more be new again.
-- KEYS[1] hash    owner      node, epoch, generation
-- KEYS[2] hash    state      readmitted, lost = URLs
-- KEYS[3] stream  inbox      field f = packed 8-byte keys of URLs to be forgotten
-- ARGV[1] node id    ARGV[2] epoch    ARGV[3] generation    ARGV[4] URLs readmitted: offered again
-- ARGV[5] packed keys of those that are lost
-- Returns: 1; -1 when another node owns the partition, -3 when both sides were compared since the call was made.
-- Guarantee: the keys are in the inbox when it is counted.
-- Lost reply: repeated, it counts again and forgets again, which changes nothing more.
-- Late: refused, for the comparison after a lost reply raises the generation.
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
