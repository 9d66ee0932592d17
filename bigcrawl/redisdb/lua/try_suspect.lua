-- try_suspect: note that a URL which was in process at a death is tried alone now, or is alone no more.
-- KEYS[1] hash    owner      node, epoch, generation
-- KEYS[2] hash    taken      seq -> host \n taken-at ms \n order \n member
-- KEYS[3] hash    deaths     seq -> deaths, those with its answer there, and taken-at ms of the trial, with spaces between
-- ARGV[1] node id    ARGV[2] epoch    ARGV[3] generation    ARGV[4] seq    ARGV[5] 1: alone, 0: no more
-- Returns: 1 when noted, 0 when the URL is not taken or no suspect; -1 when another node owns the partition,
--          -3 when both sides were compared since the call was made.
-- Guarantee: the trial is noted for this take of the URL alone: one that is given back and taken again is not in it.
-- Lost reply: repeated, it changes nothing.
-- Late: refused, for the comparison after a lost reply raises the generation.
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
