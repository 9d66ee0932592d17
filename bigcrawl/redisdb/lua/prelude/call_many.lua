-- call_many: a command on a key with any number of words, in portions that fit on Lua's stack.
-- words: flat; rows of two stay together    option: an option of the command, in front of them, or nil
local function call_many(command, key, words, option)
  for from = 1, #words, 4000 do
    local upto = math.min(from + 3999, #words)
    if option then
      redis.call(command, key, option, unpack(words, from, upto))
    else
      redis.call(command, key, unpack(words, from, upto))
    end
  end
end
