-- whole_number: a count that is kept as text.
-- text: of a field, or false
-- Returns: the number; nil if there is none, or if it is damaged.
local function whole_number(text)
  return text and #text < 16 and string.match(text, '^%d+$') and tonumber(text) or nil
end
