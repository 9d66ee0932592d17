-- now_ms: the time of the crawls, ms since the epoch.
-- given: the time that the caller passed; 0 means this server's clock.
local function now_ms(given)
  local now = tonumber(given)
  if now == 0 then
    local time = redis.call('TIME')
    now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
  end
  return now
end
