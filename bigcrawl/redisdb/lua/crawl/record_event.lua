-- record_event: add an event to those of a crawl.
-- KEYS[1] zset  events   score = ms, member = ms \n kind \n node \n text
-- ARGV[1] at ms    ARGV[2] kind    ARGV[3] node id; '' if it is of no node    ARGV[4] text
-- Returns: 1.
-- Guarantee: at most 500 events are kept, the last ones.
-- Lost reply: repeated with the same time, it changes nothing.
-- Late: the event stands at its own time.
-- Cost: O(log events).
-- Uses: prelude/add_event
add_event(KEYS[1], tonumber(ARGV[1]), ARGV[2], ARGV[3], ARGV[4])
return 1
