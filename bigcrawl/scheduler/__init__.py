"""The frontier: everything known about URLs, and which of them may be fetched now. This is the life of a URL.

**In short.** A discovered URL travels to the partition of its pay-level domain (PLD). There it is checked against all
URLs seen before. It waits on disk until there is room in Redis, and in Redis until its host is due. The partition's
owner fetches it. Redis forgets it once its page and its links are safe.

**In fourteen steps.** Modules refer to a step by its number. The right column says where the URL is after the step,
also if a crash follows.

     1 discovered    `links`, `middlewares.links`, `scheduler`   in the spider's output
     2 canonical     `url.canonical`, `adapter.request_codec`    a `QueuedUrl`
     3 routed        `node.outbox`                               inbox: one Redis stream per partition
     4 seen?         `fold.seen`, `bigcrawl.drum`                } committed by the manifest: URLSeen,
     5 budgeted      `fold.budgeting`, `budgets.placement`       } turns, over-budget and parked queues,
     6 prioritised   `queues.turns`, `queues.front_queues`       } and the admit batch chosen from them
     7 host queue    `fold.admission`, `owned_partition`         back queue: one zset per host, in Redis
     8 ready         (scripts in `redisdb`)                      ready heap: a zset of hosts, in Redis
     9 taken         `node.exchange`, `records.held`             taken: in Redis, and held by the node
    10 allowed?      `gates.gatekeeper` and its checks           as before, or back in 7, or ended
    11 fetched       `handout.buffer`, `scheduler`, Scrapy       as before
    12 released      } one call, `exchange_urls`,                its host is in 8, with a next fetch time
    13 parsed        } when Scrapy is done                       its links are in 3, its page in a WARC file
    14 acknowledged  } with the request                          gone, except a key in URLSeen and a counter

The loops of a node do this work; the docstring of `node.node` lists them. The parts that Scrapy's engine calls
(`scheduler`, `handout.buffer`, `node.outbox`) use memory only.

**In eleven rooms**, each named after the state that it owns. A room imports only from those above it.

    records    a URL in each of its states, as data and bytes
    rules      set by hand: limits, delays, the blacklist
    budgets    how many URLs of a PLD may pass
    queues     URLs that wait on disk, and their files
    partition  one partition's fold and its commit; no Redis, no clock
    crawl      shared by all nodes: the crawl record, live nodes, ownership, the end of the crawl
    gates      may a taken URL be fetched, and when?
    handout    from "may be fetched" to "ended"; memory only
    owner      the partitions that this node owns
    node       one process: its loops, and their exchange with Redis
    adapter    everything that depends on Scrapy, besides `scheduler` and `dupefilter`
"""

# docs/life-of-a-url.md tells each transition.
