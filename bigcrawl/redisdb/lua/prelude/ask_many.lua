-- ask_many: the answers of a command that has one for each of any number of words, such as HMGET.
-- words: sent in portions that fit on Lua's stack.
-- Returns: as many answers, false if there is none.
local function ask_many(command, key, words)
  if #words <= 4000 then
    return #words > 0 and redis.call(command, key, unpack(words)) or {}
  end
  local answers = {}
  for from = 1, #words, 4000 do
    for _, answer in ipairs(redis.call(command, key, unpack(words, from, math.min(from + 3999, #words)))) do
      answers[#answers + 1] = answer
    end
  end
  return answers
end
