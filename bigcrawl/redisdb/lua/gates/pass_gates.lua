-- pass_gates: grant a node the next start time that all given gates allow, if it is near, or a turn to ask again.
-- A gate belongs to a server (an IP address), a pay-level domain, or a user's group.
-- KEYS[1] prefix  gate:   + name: string, "free others since line began", then node and last, on a line each; expires
--                         when all times, in ms, are past. free: node, which got the last start, may start again;
--                         others: other nodes may start; since: node's first start after the last one of another node;
--                         line, last: the end of the last turn, and its node; began: the last start
-- ARGV[1] now_ms (0: this server's clock)    ARGV[2] earliest start wanted ms    ARGV[3] node
-- ARGV[4] late ms: a start may happen so much later
-- ARGV[5] missed ms: an earlier start that was given up or missed; 0 for none
-- ARGV[6] ahead ms: no start is granted if a gate becomes free later than this from now
-- ARGV[7] 1: the caller has waited for its turn
-- ARGV[8] kept ms: the longest gap of other crawls; a start is remembered for so long
-- ARGV[9...] per gate: name, gap between starts ms
-- Returns: {start ms or turn ms, 1 for a start and 0 for a turn}. The caller starts at that time, or up to `late` after
--          it, and keeps its own starts apart; or it asks again at its turn.
-- Guarantee: over all callers, starts at one gate that are not too late are the gate's gap apart; if the gaps of two
--            callers differ, the longer one. A missed start is granted again at once if no other node got a start
--            since. Whether a turn leads to a start does not depend on its node. A caller that must wait for one of
--            several gates uses up no start at the others, and does not lengthen their turns.
-- Lost reply: a repeat wastes one gap.
-- Late: it wastes one gap.
-- Cost: O(gates).
-- Uses: prelude/now_ms
local now = now_ms(ARGV[1])
local wanted, late, missed = math.max(now, tonumber(ARGV[2])), tonumber(ARGV[4]), tonumber(ARGV[5])
local gates, start, is_free_still = {}, wanted, missed > 0
for i = 9, #ARGV, 2 do
  local record = redis.call('GET', KEYS[1] .. ARGV[i]) or '0 0 0 0 0\n\n'
  local times, node, last = string.match(record, '^([%d ]+)\n(.*)\n(.*)$')
  local free, others, since, line, began = string.match(times, '^(%d+) (%d+) (%d+) (%d+) ?(%d*)$')
  local gate = {name = ARGV[i], gap = tonumber(ARGV[i + 1]), node = node, last = last}
  gate.free, gate.others, gate.since, gate.line = tonumber(free), tonumber(others), tonumber(since), tonumber(line)
  gate.began = tonumber(began) or 0
  gate.is_same = node == ARGV[3]
  gate.own = gate.began > 0 and gate.began + gate.gap or 0
  local later = gate.is_same and 0 or gate.others - gate.free -- how late the last node may be
  gate.next = math.max(gate.free, gate.own) + later
  gate.turn = math.max(wanted, gate.line + ((last == '' or last == ARGV[3]) and 0 or late))
  start = math.max(start, gate.next)
  is_free_still = is_free_still and gate.is_same and missed >= gate.since
  gates[#gates + 1] = gate
end
local refused, turn = {}, 0
for _, gate in ipairs(gates) do
  local is_near = math.max(wanted, gate.free, gate.own) - now <= tonumber(ARGV[6])
  -- If a gate was idle for its gap, the nodes with earlier turns have not come, so their turns no longer count.
  local has_turn = start >= gate.turn or ARGV[7] == '1' or now >= gate.others + gate.gap
  if not is_free_still and not (is_near and has_turn) then
    refused[#refused + 1] = gate
    turn = math.max(turn, gate.turn, gate.next)
  end
end
local is_granted = #refused == 0
if is_granted then
  start = is_free_still and wanted or start
else
  start, gates = turn, refused
end
for _, gate in ipairs(gates) do
  if is_granted then
    gate.free = math.max(gate.free, start + gate.gap)
    gate.since = gate.is_same and gate.since or start
    gate.others = math.max(gate.others, start + gate.gap + late)
    gate.began = math.max(gate.began, start)
    gate.node = ARGV[3]
  else
    gate.line, gate.last = math.max(gate.turn, gate.next) + gate.gap, ARGV[3]
  end
  local times = string.format('%.0f %.0f %.0f %.0f %.0f', gate.free, gate.others, gate.since, gate.line, gate.began)
  local until_ms = math.max(gate.others, gate.line, gate.began + tonumber(ARGV[8]))
  local left_ms = string.format('%.0f', until_ms - now + 1000)
  redis.call('SET', KEYS[1] .. gate.name, times .. '\n' .. gate.node .. '\n' .. gate.last, 'PX', left_ms)
end
return {start, is_granted and 1 or 0}
