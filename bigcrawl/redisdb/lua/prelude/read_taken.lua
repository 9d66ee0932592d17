-- read_taken: what the record of a taken URL says.
-- record: host \n taken-at ms \n order \n member.
-- Returns: these four, as strings.
local function read_taken(record)
  return string.match(record, '^([^\n]*)\n([^\n]*)\n([^\n]*)\n(.*)$')
end
