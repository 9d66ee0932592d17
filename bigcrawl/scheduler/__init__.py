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

**Transition by transition.**

*Discovered to canonical (1, 2).* A spider yields ordinary Requests, or `Links`: batches of URLs that become Requests
only when they are fetched. `middlewares.links` receives the batches, and `Scheduler.enqueue_request` the Requests.
`adapter.request_codec` turns each URL into a `QueuedUrl`: the 64-bit key of its canonical form, its host, a priority,
and a body that the frontier does not decode. A URL that cannot be crawled or stored ends here and is counted
(`bigcrawl/dropped/{reason}`). A retry, or a redirect of a URL to itself, is recognised by `adapter.tries`, and becomes
the next try of the URL in process (see 12).

*Canonical to inbox (2 to 3).* The PLD of the host determines the partition, by the crawl's own copy of the
public-suffix list. `node.outbox` drops URLs that it sent recently. The pump sends the others in numbered batches. Redis
accepts each number once, so repeating a batch after a lost reply is harmless. While the outbox is full, or owners have
not folded enough of earlier batches (`node.unfolded`), the spider middleware makes spiders wait. No URL is ever dropped
for lack of room.

*Inbox to committed step (3 to 6).* The owner (`owner.folding`, `owner.owned_partition`) reads new inbox entries and
passes them to `partition.partition`, which is a fold over them. One step looks up all keys in DRUM and adds the new
ones. It finds the budget of each new URL's PLD (`fold.budgeting`), and from it the turn in which the URL may be fetched
(`budgets.placement`). A prioritizer (`queues.prioritizers`) or a feature (`fold.feature`) may change its priority. The
step appends the URL to the queue of that turn and its priority level, or to the over-budget queue (`queues.turns`).
Finally it chooses URLs to admit into Redis. The step is committed by appending one record to the manifest
(`partition.manifest_log`). The record names all parts of the step: the last entry read, the runs and new keys, the
queues' segments and heads, and the numbered admit batch. A crash before the record is complete leaves bytes without a
reference. A crash after it leaves a batch that must be offered again.

*Front queue to back queue (6 to 7).* `fold.admission` chooses URLs of three kinds of hosts, in this order: parked hosts
with few URLs in Redis, hosts in the front queues (by a biased selector), and other parked hosts. Beyond its host's
share in Redis, a URL is parked on disk behind the host's earlier ones. A script (`admit_urls`) admits the batch. It
accepts number n only once, and only after n-1, so a batch whose reply was lost is sent again.

*Back queue to ready heap (7 to 8).* The same script makes a host with waiting URLs ready, unless it is busy. A host's
score in the ready heap is its next fetch time, which never moves back. While the host has no URLs, its host record
keeps that time.

*Ready to taken (8 to 9).* The pump asks for URLs of the partitions that have a host due within half a second
(`exchange_urls`). A host gives one URL and becomes busy. From now on the URL is in two places: taken in Redis, and held
in the node (`records.held`). If a reply is lost, or Redis loses data, the two are compared, and the node's side wins
(`owner.reconciliation`). A node takes at most BIGCRAWL_IN_PROCESS_MAX URLs, so at most that many are fetched again
after its death. A host with a short delay gives further URLs ahead of its turns, and the node paces it
(`handout.lanes`).

*Taken to handed out (9 to 11).* `gates.gatekeeper` checks whether the URL may be fetched, and when. Its docstring lists
the checks in their order; most are answered from memory. If the robots rules of the URL's authority are unknown,
robots.txt is fetched in its place, and the URL returns to its queue. So that fetch is as polite as any other
(`gates.robots`); a HEAD is sent in the same way (`gates.starts`). `gates.address_check` resolves and checks the
address, `gates.passages` gets start times from the gates, and `gates.shared_hosts` holds hosts that other crawls fetch
too. A URL that passes all checks waits in `handout.buffer` for Scrapy's engine, which fetches it like any request. A
URL that would have to wait longer than a second goes back to its queue. Waiting URLs occupy no fetch slot.

*Fetched to released and acknowledged (11 to 14).* Scrapy has no hook for a finished request. So the pump looks which
requests have left the engine, including item pipelines (`adapter.engine_probe`). Their URLs have ended: with a status,
an error, or a next try. A URL is acknowledged when all links offered to the outbox before its end are in Redis, all
pages stored before it are on the medium, all items are flushed, and features' observations of its page were sent
(`handout.observers`). The call that acknowledges it also sets its host's next fetch time and takes further URLs
(`exchange_urls`). Before that call, a crash brings the URL back. After it, nothing of the URL can be lost.

*A failed try (12 back to 7).* The URL goes behind its host's other URLs, with the request of Scrapy's retry middleware,
which decides how often to retry. A URL that was redirected to itself returns to its old place. If the failure is the
host's (`handout.host_health`), it is counted in the host record. The host rests longer after each failure, and is
retired after too many.

*Back queue back to disk (8 to 6).* If a host is snoozed for a minute or more, or retired, its URLs in Redis go through
the partition's own inbox back to the queues on disk (`owner.parking`). There they stay parked until the host answers,
or until the operator awakens it.

*A request that cannot be run (9 back to 6).* If the spider lacks its callback, or cannot decode it, the URL goes
through the inbox to a queue on disk, one for each missing method (`node.set_aside`, `queues.unrunnable`). It returns
when the owner's spider has the method. The crawl is not finished without it.

*An owner's death (9 back to 7).* The next node claims the partition in a higher epoch. The claim returns all taken URLs
to their queues, and their hosts rest, longer if the dead node may still be downloading. On disk, the new owner links
the committed files into the directory of its own epoch (`partition.takeover`). It never writes to inherited files.
`crawl.membership` knows the live nodes, and each node computes the same `crawl.assignment` of partitions.

*A URL that may have killed its owner.* The node's lock file records which requests the engine had (`crawl.in_process`).
The claim counts a death for each of their URLs. These suspects are tried with few others in process, or alone
(`handout.suspects`, `node.trials`). A proven killer ends as a dead letter (`records.dead_letters`). If a node's loop
hangs, `node.watchdog` ends the process, and that counts as a death too.

*The end (`crawl.survey`).* The crawl is finished when two passes over all partitions find no URL waiting or taken, no
start requests under way, and all monotonic counters unchanged between the passes.
"""
