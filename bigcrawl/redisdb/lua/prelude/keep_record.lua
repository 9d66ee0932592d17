-- keep_record: let a host's record live for some time longer, or as long as it would anyway.
-- key: of the record    ms: from now.
local function keep_record(key, ms)
  if redis.call('PTTL', key) < ms then
    redis.call('PEXPIRE', key, ms)
  end
end
