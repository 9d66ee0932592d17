-- advance_inbox: make new inbox entries get ids above those that the owner has folded.
-- KEYS[1] stream  inbox
-- ARGV[1] id of the last entry that the manifest has folded
-- Returns: 1 if the stream's last id was raised, 0 if it was high enough.
-- Guarantee: existing entries stay; an id up to ARGV[1] is never given out again.
-- Lost reply: repeated, it changes nothing.
-- Late: like a repeat.
-- Cost: O(1).
-- Uses: prelude/last_entry_id
local function split(id)
  local time_ms, counter = string.match(id, '^(%d+)%-(%d+)$')
  return tonumber(time_ms), tonumber(counter)
end
local want_ms, want_counter = split(ARGV[1])
if want_ms == 0 then
  return 0
end
local last_ms, last_counter = split(last_entry_id(KEYS[1]))
if last_ms > want_ms or (last_ms == want_ms and last_counter >= want_counter) then
  return 0
end
redis.call('XADD', KEYS[1], ARGV[1], 'b', '')
redis.call('XDEL', KEYS[1], ARGV[1])
return 1
