-- call_many: a command on a key with any number of words, in portions that fit on Lua's stack.
-- words: flat; rows of two stay together    option: an option of the command, in front of them, or nil
-- from, upto: the first and the last one to send; nil for all.
local function call_many(command, key, words, option, from, upto)
  upto = upto or #words
  for start = from or 1, upto, 4000 do
    local stop = math.min(start + 3999, upto)
    if option then
      redis.call(command, key, option, unpack(words, start, stop))
    else
      redis.call(command, key, unpack(words, start, stop))
    end
  end
end
