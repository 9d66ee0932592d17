-- pass_gate: grant a node the next start on a server (an IP address) if that is near, else a turn to ask again.
-- KEYS[1] string  gate    "free others since line node"; ms; expires when past
--                         free, others: from when the next start is allowed to the node that was granted the last one,
--                         and to others; since: since when nobody else was granted one; line: the next turn
-- ARGV[1] now_ms (0: this server's clock)    ARGV[2] gap between starts ms    ARGV[3] earliest start wanted ms
-- ARGV[4] node    ARGV[5] late ms: by how much the start may reach the server late
-- ARGV[6] missed ms: the start that was granted before and is too late by now; 0 for none
-- ARGV[7] ahead ms: a start further ahead is not granted    ARGV[8] 1: the caller has waited for its turn
-- Returns: {now_ms, start ms or turn ms, 1 for a start and 0 for a turn}; the caller starts then or `late` after that, and
--          keeps its own starts apart; or asks again at its turn.
-- Guarantee: starts of one server that are no later than allowed are the gap apart, over all nodes and crawls. A missed
--            start is granted at once where nobody else was granted one since.
-- Lost reply: a repeat wastes one gap.
-- Cost: O(1).
local now = tonumber(ARGV[1])
if now == 0 then
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
local gap, start, late, missed = tonumber(ARGV[2]), math.max(now, tonumber(ARGV[3])), tonumber(ARGV[5]), tonumber(ARGV[6])
local record = redis.call('GET', KEYS[1]) or ''
local free, others, since, line, node = string.match(record, '^(%d+) (%d+) (%d+) (%d+) (.*)$')
free, others, since, line = tonumber(free or 0), tonumber(others or 0), tonumber(since or 0), tonumber(line or 0)
local is_same = node == ARGV[4]
local is_free = is_same and missed > 0 and missed >= since
if not is_free then
  start = math.max(start, is_same and free or others)
end
local is_granted = is_free or (start - now <= tonumber(ARGV[7]) and (start >= line or ARGV[8] == '1'))
if is_granted then
  free = is_free and free or start + gap
  since = is_same and since or start
  others = math.max(others, start + gap + late)
  node = ARGV[4]
else
  start = math.max(start, line)
  line = start + gap + (is_same and 0 or late)
end
local expires = string.format('%.0f', math.max(others, line) - now + 1000)
redis.call('SET', KEYS[1], string.format('%.0f %.0f %.0f %.0f %s', free, others, since, line, node or ''), 'PX', expires)
return {now, start, is_granted and 1 or 0}
