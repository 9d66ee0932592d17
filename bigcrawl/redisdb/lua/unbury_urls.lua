-- unbury_urls: take dead letters away, by hand; those that are to be fetched again were queued before this.
-- KEYS[1] hash    state      dead = letters kept
-- KEYS[2] hash    dead       key of the URL -> letter
-- ARGV[1...] per letter: key of the URL
-- Returns: letters taken away.
-- Guarantee: dead is the number of letters; owner and epoch are not asked.
-- Lost reply: repeated, it passes over what is gone.
-- Late: a letter that was written meanwhile is gone too, and its URL is tried again when it is queued by hand.
-- Cost: O(letters).
local gone = 0
for i = 1, #ARGV, 1 do
  gone = gone + redis.call('HDEL', KEYS[2], ARGV[i])
end
redis.call('HSET', KEYS[1], 'dead', redis.call('HLEN', KEYS[2]))
return gone
