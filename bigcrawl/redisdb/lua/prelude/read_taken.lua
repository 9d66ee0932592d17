-- read_taken: the fields of a taken URL's record.
-- record: host \n taken-at ms \n order \n member.
-- Returns: these four, as strings.
local function read_taken(record)
  return string.match(record, '^([^\n]*)\n([^\n]*)\n([^\n]*)\n(.*)$')
end
