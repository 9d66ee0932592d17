-- unbury_urls: delete dead letters, at the operator's request. URLs to be fetched again are queued before this call.
-- KEYS[1] hash    state      dead = number of letters
-- KEYS[2] hash    dead       key of the URL -> letter
-- ARGV[1...] per letter: key of the URL
-- Returns: the number of letters deleted.
-- Guarantee: dead is the number of letters. Owner and epoch are not checked.
-- Lost reply: repeated, it skips the letters that are gone.
-- Late: a letter stored meanwhile is deleted too, so its URL is only tried again if it is queued by hand.
-- Cost: O(letters).
local gone = 0
for i = 1, #ARGV, 1 do
  gone = gone + redis.call('HDEL', KEYS[2], ARGV[i])
end
redis.call('HSET', KEYS[1], 'dead', redis.call('HLEN', KEYS[2]))
return gone
