-- add_event: add an event to those of a crawl, of which the last 500 are kept.
-- at_ms: when it happened    node: '' if it is of no node    text: '' if the kind says all
local function add_event(key, at_ms, kind, node, text)
  redis.call('ZADD', key, at_ms, string.format('%.0f', at_ms) .. '\n' .. kind .. '\n' .. node .. '\n' .. text)
  local over = redis.call('ZCARD', key) - 500
  if over > 0 then
    redis.call('ZPOPMIN', key, over)
  end
end
