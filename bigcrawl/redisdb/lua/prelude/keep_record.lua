-- keep_record: make a host's record live for at least this long from now.
-- key: of the record    ms: the time to live; a longer one stays.
local function keep_record(key, ms)
  if redis.call('PTTL', key) < ms then
    redis.call('PEXPIRE', key, ms)
  end
end
