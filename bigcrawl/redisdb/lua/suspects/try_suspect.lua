-- try_suspect: record that a URL that was in process when a node died is now tried alone, or no longer alone.
-- KEYS[1] hash    owner      node, epoch, generation
-- KEYS[2] hash    taken      seq -> host \n taken-at ms \n order \n member
-- KEYS[3] hash    deaths     seq -> deaths, those after its answer, and taken-at ms of the trial, separated by spaces
-- ARGV[1] node id    ARGV[2] epoch    ARGV[3] generation    ARGV[4] seq    ARGV[5] 1: alone, 0: no longer alone
-- Returns: 1 if recorded, 0 if the URL is not taken or no suspect; -1 if another node owns the partition,
--          -3 if it was reconciled since the call was made.
-- Guarantee: the record applies to this take only. If the URL is returned and taken again, it is not on trial.
-- Lost reply: repeated, it changes nothing.
-- Late: refused, because the reconciliation after a lost reply raised the generation.
-- Cost: O(1).
-- Uses: prelude/refusal, prelude/read_taken
local refused = refusal(KEYS[1], ARGV[1], ARGV[2], ARGV[3])
if refused then
  return refused
end
local record = redis.call('HGET', KEYS[2], ARGV[4])
local known = redis.call('HGET', KEYS[3], ARGV[4])
if not record or not known then
  return 0
end
local _, taken_ms = read_taken(record)
local mark = ARGV[5] == '1' and ' ' .. taken_ms or ''
redis.call('HSET', KEYS[3], ARGV[4], string.match(known, '^%d+ %d+') .. mark)
return 1
