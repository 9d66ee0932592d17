"""`make bench-frontier`: CPU a scheduled page costs, at 100 to 100,000 hosts; no network and no pages.

What is counted is taking a URL, releasing its host and acknowledging it, with Redis' share; the way of links to
the queues is apart. Held fixed: every URL waits in the hot set before the clock starts, 64 are in flight, hosts
and servers need no rest, names are resolved, robots.txt is ignored (both are in `make bench`). The cores are
kept awake, as a whole crawl keeps them: fetches that take no time leave them idle nine tenths of the time, and
waking up each time costs a fifth. Of several rounds the cheapest counts: it is the one that others disturbed least.

    ours      a real node with its loops against a real Redis, the engine's side simulated
    peers     Scrapy's DownloaderAwarePriorityQueue, and scrapy-redis' priority queue against a real Redis
    __main__  options and the table
"""
