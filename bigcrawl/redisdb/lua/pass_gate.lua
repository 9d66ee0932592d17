-- pass_gate: grant a node the next start on a server (an IP address) if that is near, else a turn to ask again.
-- KEYS[1] string  gate    "free others since line", node and last, a line each; ms; expires when past
--                         free, others: from when the next start is allowed to the node that was granted the last one,
--                         and to others; since: since when nobody else was granted one; line: when the last turn is
--                         over, and whose it was
-- ARGV[1] now_ms (0: this server's clock)    ARGV[2] gap between starts ms    ARGV[3] earliest start wanted ms
-- ARGV[4] node    ARGV[5] late ms: by how much the start may reach the server late
-- ARGV[6] missed ms: the start that was granted before and is too late by now; 0 for none
-- ARGV[7] ahead ms: no start is granted when the server is free further ahead than that
-- ARGV[8] 1: the caller has waited for its turn
-- Returns: {start ms or turn ms, 1 for a start and 0 for a turn}; the caller starts then or `late` after that, and
--          keeps its own starts apart; or asks again at its turn.
-- Guarantee: starts of one server that are no later than allowed are the gap apart, over all nodes and crawls. A missed
--            start is granted at once where nobody else was granted one since. Whether a turn leads to a start does not
--            depend on whose it is.
-- Lost reply: a repeat wastes one gap.
-- Cost: O(1).
local now = tonumber(ARGV[1])
if now == 0 then
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
local gap, start, late, missed = tonumber(ARGV[2]), math.max(now, tonumber(ARGV[3])), tonumber(ARGV[5]), tonumber(ARGV[6])
local record = redis.call('GET', KEYS[1]) or '0 0 0 0\n\n'
local free, others, since, line, node, last = string.match(record, '^(%d+) (%d+) (%d+) (%d+)\n(.*)\n(.*)$')
free, others, since, line = tonumber(free), tonumber(others), tonumber(since), tonumber(line)
local is_same = node == ARGV[4]
local turn = math.max(start, line + ((last == '' or last == ARGV[4]) and 0 or late))
local is_near = math.max(start, free) - now <= tonumber(ARGV[7])
if is_same and missed > 0 and missed >= since then
  is_near, turn = true, start
elseif is_near then
  start = math.max(start, is_same and free or others)
end
-- A server that was idle for a gap waits for turns that nobody comes for: their nodes have forgotten them.
local is_granted = is_near and (start >= turn or ARGV[8] == '1' or now >= others + gap)
if is_granted then
  free = math.max(free, start + gap)
  since = is_same and since or start
  others = math.max(others, start + gap + late)
  node = ARGV[4]
else
  start = math.max(turn, is_same and free or others)
  line, last = start + gap, ARGV[4]
end
record = string.format('%.0f %.0f %.0f %.0f\n%s\n%s', free, others, since, line, node, last)
redis.call('SET', KEYS[1], record, 'PX', string.format('%.0f', math.max(others, line) - now + 1000))
return {start, is_granted and 1 or 0}
