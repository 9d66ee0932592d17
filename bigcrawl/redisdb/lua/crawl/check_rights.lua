-- check_rights: tell which commands the caller's user may not run, at all or on some keys.
-- KEYS[1] hash  clock    not touched; the user may read it
-- ARGV[1...] rows of a command and a key that it is needed for
-- Returns: for each row that is not permitted, the command and its key, or an empty key if it is not permitted at all.
-- Guarantee: changes nothing.
-- Lost reply: repeated, it returns what holds then.
-- Late: likewise.
-- Cost: O(rows).
local function may(command, key)
  if command == 'XINFO' then
    return redis.acl_check_cmd(command, 'STREAM', key)
  end
  return redis.acl_check_cmd(command, key)
end
local missing = {}
for i = 1, #ARGV, 2 do
  if not may(ARGV[i], KEYS[1]) then
    missing[#missing + 1] = {ARGV[i], ''}
  elseif not may(ARGV[i], ARGV[i + 1]) then
    missing[#missing + 1] = {ARGV[i], ARGV[i + 1]}
  end
end
return missing
