"""The frontier: what is known of URLs, and which of them may be fetched now. The life of a URL, told once.

**In a sentence.** A discovered URL travels to the one partition that its pay-level domain (PLD) belongs to,
is held there against everything seen, waits on disk until there is room and in Redis until its host may be
asked, is fetched by the partition's owner, and is forgotten by Redis when its page and its links are safe.

**In fourteen steps.** Modules refer to a step by its number. The right column is where the URL is when the
step is over, which is also what a crash leaves.

     1 discovered    `links`, `middlewares.links`, `scheduler`   in the spider's output
     2 canonical     `url.canonical`, `adapter.request_codec`    a `QueuedUrl`
     3 routed        `node.outbox`                               inbox: a Redis stream a partition
     4 seen?         `partition.seen`, `bigcrawl.drum`           } committed by the manifest: URLSeen,
     5 budgeted      `partition.budgeting`, `budgets.placement`  } turns, over-budget and parked queues,
     6 prioritised   `queues.turns`, `queues.front_queues`       } and the admit batch chosen from them
     7 host queue    `partition.admission`, `owned_partition`    back queue: a zset a host, in Redis
     8 ready         (scripts in `redisdb`)                      ready heap: a zset of hosts, in Redis
     9 taken         `node.exchange`, `records.held`             taken: in Redis, and held by the node
    10 allowed?      `gates.gatekeeper` and whom it asks         as before, or back in 7, or ended
    11 fetched       `handout.handout`, `scheduler`, Scrapy      as before
    12 released      } one call, `exchange_urls`,                host in 8 with its next fetch time
    13 parsed        } when Scrapy is done                       links in 3, page in a WARC file
    14 acknowledged  } with all of it                            gone; a key in URLSeen, a counter

The loops of a node carry it; the docstring of `node.node` has them. What Scrapy's engine touches (`scheduler`,
`handout.handout`, `node.outbox`) is memory only.

**In eleven rooms**, each named after the state that it owns. A room imports from those above it.

    records    a URL in each of its states, as data and bytes
    rules      what is set by hand: limits, delays, the blacklist
    budgets    how many URLs of a PLD may pass
    queues     URLs that wait on disk, and their files
    partition  one partition's fold and its commit; no Redis, no clock
    crawl      what all nodes share: the record, who lives, who owns what, the end
    gates      may a taken URL be fetched, and when?
    handout    from "may be fetched" to "ended"; memory only
    owner      the partitions that this node owns
    node       one process: its loops, and what they carry to and from Redis
    adapter    all that says "scrapy", besides `scheduler` and `dupefilter`

**Transition by transition.**

*Discovered to canonical (1, 2).* A spider yields `Links`, a batch of URLs that never become Requests, or ordinary
Requests. `middlewares.links` takes the batches; Requests come through `Scheduler.enqueue_request`. Either way
`adapter.request_codec` makes a `QueuedUrl` of each: the 64-bit key of its canonical form, its host, a priority, and a
body that the frontier never looks into. What cannot be crawled or stored ends here, counted
(`bigcrawl/dropped/{reason}`). A retry, or a redirect of a URL to itself, is recognised here (`adapter.tries`) and does
not go on: it becomes the next try of the URL in process (see 12).

*Canonical to inbox (2 to 3).* The PLD of the host, by the crawl's own copy of the public-suffix list, gives the
partition. `node.outbox` drops what it sent lately, gathers the rest by partition, and the pump sends it as numbered
batches; a number is taken once, so a repeat after a lost reply is harmless. While the outbox is full, or owners have
not merged what was sent (`node.unfolded`), the spider middleware makes spiders wait: nothing is ever refused or
dropped for want of room.

*Inbox to committed step (3 to 6).* The owner (`owner.folding`, `owner.owned_partition`) reads new inbox entries and
hands them to `partition.partition`, which is a fold over them: look all keys up in DRUM and add the new ones; find the
budget of each new URL's PLD (`partition.budgeting`), which says in which turn the URL may go (`budgets.placement`);
append it to the queue of that turn and its priority, or to the over-budget queue (`queues.turns`); choose what is to
become hot. The step is committed by one record appended to the manifest (`partition.manifest_log`), which names all of
it: the last entry read, the runs and fresh keys, the queues' segments and heads, and the admit batch with its number.
A crash before the record is whole leaves bytes that nothing refers to; a crash after it leaves a batch to offer again.

*Front queue to back queue (6 to 7).* `partition.admission` chooses: hosts that run low first, then the front queues by
a biased selector, then hosts with much. A URL whose host has its share in Redis is parked on disk behind its host's
earlier ones. The chosen batch goes to Redis by a script that takes number n after n-1 and once (`admit_urls`): a
commit that was not told is told again, one that was told twice changes nothing.

*Back queue to ready heap (7 to 8).* The same script makes sure that a host with URLs waiting is ready or busy. Its
place in the ready heap is the time from which it may be asked, which never moves back: the host record keeps it while
the host has nothing to fetch.

*Ready to taken (8 to 9).* The pump asks the partitions in which a host is due within half a second (`exchange_urls`);
a host gives one URL and becomes busy. From now on the URL is twice: as taken in Redis, held in the node
(`records.held`). Whenever a reply was lost or Redis lost its memory, the two are compared and the node's side wins
(`owner.reconciliation`). A node takes no more than BIGCRAWL_IN_PROCESS_MAX; that is what its death repeats.

*Taken to handed out (9 to 11).* `gates.gatekeeper` asks whether the URL may be fetched, and when: its docstring has
the questions in their order, most often answered from memory. While its authority's robots rules are not known,
robots.txt is fetched in the URL's place and the URL returns to its queue, so that the fetch is as polite as any
(`gates.robots`). `gates.address_check` finds the address, `gates.passages` asks the gates, `gates.shared_hosts` holds
the hosts that other crawls fetch too. A URL that passes waits in the buffer of `handout.handout` for Scrapy's engine,
which fetches it as any request. A URL that must wait longer than a second goes back; none that waits holds a fetch
slot.

*Fetched to released and acknowledged (11 to 14).* Scrapy has no hook that says that a request is finished; the pump
looks which requests have left the engine, item pipelines included (`adapter.engine_probe`). Such a URL ends: with a
status, an error, or a next try. It is acknowledged once everything the outbox had been offered until then is in Redis,
every page stored until then is on the medium and every item is flushed, by the call that also gives its host the next
fetch time (`exchange_urls`, which also takes). Until then a crash brings the URL back; after it, nothing of it is
missing.

*A failed try (12 back to 7).* The URL goes behind its host's others, as the request that Scrapy's retry middleware
made of it; one that was redirected to itself returns to its old place. Scrapy decides how often. Where it is the host
that fails (`handout.host_health`), that is counted in its record: it rests longer each time, and in the end it is
retired.

*Back queue back to disk (8 to 6).* What a host has in Redis that is snoozed for a minute or more, or retired, goes
through the partition's own inbox back to the queues on disk (`owner.parking`), and is parked until the host answers,
or is awakened by hand.

*An owner's death (9 back to 7).* Whoever claims the partition next, in a higher epoch, finds all taken URLs back in
their queues; their hosts rest, longer if the dead node may still be downloading. On disk the new owner links the
committed files into a directory of its own epoch (`partition.takeover`), and never writes to inherited ones.
`crawl.membership` knows who lives, `crawl.assignment` who should own what; every node computes the same answer.

*A URL that may have been the death of its owner.* What the engine had been given is on record in the node's lock file
(`crawl.in_process`); the claim counts a death for each such URL. These suspects are tried with few others in process
or alone (`handout.suspects`, `node.trials`), and one that is found to kill ends as a dead letter
(`records.dead_letters`). A loop that stands still is a death too: `node.watchdog` sees to it.

*The end (`crawl.survey`).* The crawl is finished when two looks over all partitions find nothing waiting, nothing
taken, no start requests under way, and every counter that only grows unchanged between them.
"""
