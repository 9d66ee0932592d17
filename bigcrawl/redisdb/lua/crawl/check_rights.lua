-- check_rights: list the commands that the caller's user is not permitted to run, at all or on some keys.
-- KEYS[1] hash  clock    not touched
-- ARGV[1...] rows of a command and a key that it is needed for
-- Returns: the command and key of each row that is not permitted; an empty key if the command never is.
-- Guarantee: changes nothing.
-- Lost reply: repeated, it returns the rights of that moment.
-- Late: like a repeat.
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
