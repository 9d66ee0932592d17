"""THE table of metrics; `make docs` writes `docs/metrics.md` from it.

To add one, put a row into the group of its part, with a help that says what is counted, and the number's source. Use a
number that exists anyway: no row asks Redis or the disk. Names follow OpenMetrics: units are base units and part of the
name, and the name of a counter gets `_total` where it is shown. The values of a label come from a fixed list, never
from a host, a URL or a PLD. Every series also has the label `crawl`.

Kinds: a `counter` only grows, from 0 at the start of the process; a `gauge` goes up and down; a `histogram` counts
times by their length; an `info` is 1, and has its facts in labels.

A row about *owned* partitions is about those of this node, so the sum over all nodes is the whole crawl. It is a gauge
even if its sum only grows, because a partition takes its counts to its next owner.
"""

from __future__ import annotations

from bigcrawl import __version__
from bigcrawl.feature_list import modules_of
from bigcrawl.metrics.outcomes import (
    DROPS,
    ERRORS,
    OTHER,
    OUTCOMES,
    RETURNS,
    STATUS_CLASSES,
    Metric,
    ended_counts,
    of_stat,
    returned_counts,
)
from bigcrawl.scheduler.records.held import Stage

SHOWN_ENDS = {"counter": "_total", "info": "_info"}
"""The suffix of a metric's name in the output, by kind."""

DNS_FAILURES = ("not-found", "temporary", "timeout", "malformed-name", "failed", OTHER)
HOST_STATES = ("ready", "waiting", "busy", "snoozed", "retired")
PLACES = ("inbox", "front", "over_budget", "parked", "back", "taken")
DISKS = ("state", "warc")


def _partition_metric(name: str, meaning: str, count: str, script: str = "inbox/trim_partition") -> Metric:
    """Return the metric of a count that a Redis script keeps for owned partitions."""
    return Metric(name, "gauge", meaning, f"redisdb/lua/{script}.lua", lambda source: source.sums.counts[count])


# A string is the title of the group that follows.
TABLE: tuple[Metric | str, ...] = (
    "The node",
    Metric(
        "bigcrawl_node",
        "info",
        "The version of this node.",
        "__init__.py",
        lambda source: {__version__: 1},
        "version",
    ),
    Metric(
        "bigcrawl_partitions",
        "gauge",
        "Partitions of the crawl, of all nodes.",
        "config/crawl.py",
        lambda source: source.parts.crawl.config.crawl.partitions,
    ),
    Metric(
        "bigcrawl_owned_partitions",
        "gauge",
        "Partitions that this node owns.",
        "scheduler/owner/ownership.py",
        lambda source: len(source.parts.ownership.owned),
    ),
    _partition_metric(
        "bigcrawl_owned_damaged_partitions", "Owned partitions that are set apart because a file is damaged.", "damaged"
    ),
    Metric(
        "bigcrawl_owned_age_seconds",
        "gauge",
        "Time since this node last got an answer from Redis about its partitions, normally 2 s at most. All gauges of "
        "owned partitions are as old.",
        "scheduler/node/heartbeat.py",
        lambda source: source.sums.age_s,
    ),
    Metric(
        "bigcrawl_lease_valid",
        "gauge",
        "1 while this node may send requests; 0 after it has slept, or been without Redis, for a lease.",
        "scheduler/handout/handout.py",
        lambda source: source.parts.handout.lease.is_valid,
    ),
    Metric(
        "bigcrawl_paused",
        "gauge",
        "1 while this node starts no fetch: by an operator's order, a speed of 0, or a full disk.",
        "scheduler/gates/speed.py",
        lambda source: source.parts.handout.speed.speed.is_paused or source.parts.engine.is_paused(),
    ),
    Metric(
        "bigcrawl_disk_free_bytes",
        "gauge",
        "Bytes that may still be written to the disks of state and pages. One that has not answered for a minute is "
        "left out.",
        "metrics/source.py",
        lambda source: source.disk.free_bytes(),
        "directory",
        DISKS,
        is_optional=True,
    ),
    "Fetches of this node",
    Metric(
        "bigcrawl_pages",
        "counter",
        "URLs that ended with an answer and were acknowledged, by class of its status.",
        "scheduler/node/exchange.py",
        lambda source: ended_counts(source.parts.exchange.ends, "status:", STATUS_CLASSES),
        "status",
        STATUS_CLASSES,
    ),
    Metric(
        "bigcrawl_page_errors",
        "counter",
        "URLs that ended without an answer, after their retries, by reason.",
        "scheduler/node/exchange.py",
        lambda source: ended_counts(source.parts.exchange.ends, "error:", ERRORS),
        "reason",
        ERRORS,
    ),
    Metric(
        "bigcrawl_retries",
        "counter",
        "Tries that were repeated, by class of status or reason.",
        "scheduler/node/exchange.py",
        lambda source: ended_counts(source.parts.exchange.ends, "retried:", OUTCOMES),
        "outcome",
        OUTCOMES,
    ),
    Metric(
        "bigcrawl_body_bytes",
        "counter",
        "Bytes of bodies as transferred, repeated tries included.",
        "scheduler/node/exchange.py",
        lambda source: source.parts.exchange.bytes,
    ),
    Metric(
        "bigcrawl_fetch_seconds",
        "histogram",
        "Time from the start of a fetch to its answer or failure, every try but those that were given up.",
        "scheduler/handout/handout.py",
        lambda source: source.parts.handout.ends.fetch_times,
    ),
    Metric(
        "bigcrawl_fetching",
        "gauge",
        "Fetches under way.",
        "scheduler/handout/handout.py",
        lambda source: source.parts.handout.fetches.under_way,
    ),
    Metric(
        "bigcrawl_fetches_limit",
        "gauge",
        "Limit on concurrent fetches, hanging ones not counted. It falls when the link is congested.",
        "scheduler/handout/concurrency.py",
        lambda source: source.parts.handout.crowd.limit,
    ),
    of_stat(
        "bigcrawl_limits",
        "Answers that met a limit, and connections closed at one, by limit.",
        "bigcrawl/limits/{reason}",
        "reason",
    ),
    "Items, and the log",
    Metric(
        "bigcrawl_items",
        "counter",
        "Scraped items that no pipeline dropped.",
        "scheduler/adapter/scrapy_engine.py",
        lambda source: source.parts.engine.made().items,
    ),
    Metric(
        "bigcrawl_log_lines",
        "counter",
        "Warnings and errors that were logged, of all loggers, also those that LOG_LEVEL hides.",
        "logs/tail.py",
        lambda source: source.log_lines(),
        "level",
        ("warning", "error"),
    ),
    "Why URLs are not fetched",
    Metric(
        "bigcrawl_dropped_urls",
        "counter",
        "URLs that this node took, and that ended without being fetched, by reason.",
        "scheduler/node/exchange.py",
        lambda source: ended_counts(source.parts.exchange.ends, "dropped:", (*DROPS, OTHER)),
        "reason",
        (*DROPS, OTHER),
    ),
    of_stat(
        "bigcrawl_dropped_links",
        "URLs dropped before they reached the frontier, by reason.",
        "bigcrawl/dropped/{reason}",
        "reason",
    ),
    of_stat(
        "bigcrawl_filtered_pages",
        "Pages that a filter kept from the spider, by its rule.",
        "bigcrawl/filtered/{rule}",
        "rule",
    ),
    Metric(
        "bigcrawl_returned_urls",
        "counter",
        "URLs that went back to their queues untried: robots.txt was fetched first, the node is behind, or they had to "
        "wait for something else.",
        "scheduler/node/exchange.py",
        lambda source: returned_counts(source.parts.exchange.ends),
        "reason",
        RETURNS,
    ),
    Metric(
        "bigcrawl_held_urls",
        "gauge",
        "URLs that this node holds: waiting at the gates or for their time, buffered for the engine, until their "
        "robots.txt is there, started, or ended and not acknowledged.",
        "scheduler/records/held_urls.py",
        lambda source: source.held_by_stage(),
        "stage",
        tuple(stage.value for stage in Stage),
    ),
    Metric(
        "bigcrawl_start_delay_seconds",
        "histogram",
        "Time that URLs wait in the node's queue for the engine after they may start.",
        "scheduler/handout/handout.py",
        lambda source: source.parts.handout.fetches.waits,
    ),
    Metric(
        "bigcrawl_lateness_seconds",
        "histogram",
        "Time from when a host is due to when a URL of it is taken; it grows when the node is behind.",
        "scheduler/handout/handout.py",
        lambda source: source.parts.handout.ends.lateness,
    ),
    Metric(
        "bigcrawl_crowded",
        "gauge",
        "1 while spiders must wait and nothing is taken, because the outbox or inboxes are full.",
        "scheduler/node/workload.py",
        lambda source: source.parts.workload.is_crowded,
    ),
    "Hosts",
    Metric(
        "bigcrawl_owned_hosts",
        "gauge",
        "Hosts with URLs in Redis, by state: due, not yet due, with a URL taken, resting for a minute or more, and "
        "retired.",
        "redisdb/lua/ownership/look_partition.lua",
        lambda source: source.sums.hosts,
        "state",
        HOST_STATES,
    ),
    Metric(
        "bigcrawl_failing_hosts",
        "gauge",
        "Hosts that failed when this node last asked them, in any state; 100,000 are remembered.",
        "scheduler/handout/host_health.py",
        lambda source: source.parts.handout.health.failing_count,
    ),
    Metric(
        "bigcrawl_host_failures",
        "counter",
        "Failures of hosts, each of which makes its host rest longer.",
        "scheduler/handout/host_health.py",
        lambda source: source.parts.handout.health.failures,
    ),
    "URLs",
    Metric(
        "bigcrawl_owned_urls",
        "gauge",
        "URLs by place: in inboxes, front queues and later turns, over budget, parked, back queues, and taken.",
        "scheduler/partition/fold/state.py, redisdb/lua/ownership/look_partition.lua",
        lambda source: source.urls_by_place(),
        "place",
        PLACES,
    ),
    _partition_metric(
        "bigcrawl_owned_withheld_urls",
        "URLs on disk that the crawl does not wait for: without budget, blacklisted, or of retired hosts.",
        "withheld",
    ),
    _partition_metric(
        "bigcrawl_owned_unrunnable_urls", "URLs on disk that no spider could run, see BIGCRAWL_CALLBACKS.", "unrunnable"
    ),
    _partition_metric("bigcrawl_owned_seen_urls", "Keys in URLSeen: distinct URLs of the crawl.", "seen"),
    _partition_metric("bigcrawl_owned_duplicate_urls", "URLs dropped because they had been seen before.", "duplicates"),
    _partition_metric(
        "bigcrawl_owned_ended_urls", "URLs that ended, with any outcome.", "ended", "exchange/exchange_urls"
    ),
    _partition_metric(
        "bigcrawl_owned_body_bytes", "Bytes of bodies as transferred, of all runs.", "bytes", "exchange/exchange_urls"
    ),
    _partition_metric(
        "bigcrawl_owned_dead_urls", "Dead letters: URLs that kill or hang their node.", "dead", "suspects/bury_url"
    ),
    _partition_metric(
        "bigcrawl_owned_begun_anew_partitions",
        "Owned partitions that started again without their lost files, by BIGCRAWL_LOST_PARTITIONS.",
        "begun_anew",
    ),
    _partition_metric(
        "bigcrawl_owned_may_refetch_urls",
        "URLs that had ended or were in Redis when those partitions started again: the most that might be fetched "
        "twice.",
        "may_refetch",
    ),
    _partition_metric(
        "bigcrawl_owned_lost_urls",
        "URLs lost because Redis forgot more than BIGCRAWL_REDIS_LOSS_SECONDS.",
        "lost",
        "inbox/record_rewind",
    ),
    _partition_metric("bigcrawl_owned_rejected_entries", "Inbox entries that could not be read.", "rejected"),
    "Links on their way out",
    of_stat("bigcrawl_links_found", "URLs received in `Links` batches.", "bigcrawl/links/found"),
    *(row for module in modules_of("metrics") for row in module.METRICS),
    Metric(
        "bigcrawl_outbox_offered_urls",
        "counter",
        "URLs, and rows about the contents of pages, offered to the outbox.",
        "scheduler/node/outbox.py",
        lambda source: source.parts.outbox.offered,
    ),
    Metric(
        "bigcrawl_outbox_recent_urls",
        "counter",
        "URLs that the outbox did not send, because it had sent them recently.",
        "scheduler/node/outbox.py",
        lambda source: source.parts.outbox.dropped_recent,
    ),
    Metric(
        "bigcrawl_outbox_urls",
        "gauge",
        "URLs in the outbox, which Redis has not taken yet.",
        "scheduler/node/outbox.py",
        lambda source: source.parts.outbox.waiting,
    ),
    "Budgets and steps",
    Metric(
        "bigcrawl_linked_plds",
        "gauge",
        "PLDs of the whole crawl that another PLD links to, whose in-degrees decide about budgets; 0 without budgets.",
        "scheduler/owner/crawl_budgets.py",
        lambda source: source.parts.ownership.crawl_budgets.linked_plds,
    ),
    Metric(
        "bigcrawl_step_seconds",
        "histogram",
        "Time of a partition's step on disk: seen check with its merges, budgets, queues and commit.",
        "scheduler/owner/folding.py",
        lambda source: source.parts.ownership.folding.step_times,
    ),
    "DNS",
    Metric(
        "bigcrawl_dns_hits",
        "counter",
        "Look-ups of the node answered from memory.",
        "politeness/dns_cache.py",
        lambda source: source.parts.gates.dns.hits,
    ),
    Metric(
        "bigcrawl_dns_shared_hits",
        "counter",
        "Look-ups answered from other nodes' shared answers.",
        "politeness/dns_cache.py",
        lambda source: source.parts.gates.dns.shared_hits,
    ),
    Metric(
        "bigcrawl_dns_questions",
        "counter",
        "Questions that the resolver was asked.",
        "politeness/dns_cache.py",
        lambda source: source.parts.gates.dns.questions,
    ),
    Metric(
        "bigcrawl_dns_failures",
        "counter",
        "Questions without an address for an answer, by reason.",
        "politeness/dns_cache.py",
        lambda source: ended_counts(source.parts.gates.dns.failures, "", DNS_FAILURES),
        "reason",
        DNS_FAILURES,
    ),
    Metric(
        "bigcrawl_dns_seconds",
        "histogram",
        "Time of a question.",
        "politeness/dns_cache.py",
        lambda source: source.parts.gates.dns.times,
    ),
    "robots.txt",
    Metric(
        "bigcrawl_robots_fetches",
        "counter",
        "Requests for robots.txt; each redirect counts.",
        "scheduler/gates/robots_redirects.py",
        lambda source: source.parts.gates.robots.fetched,
    ),
    Metric(
        "bigcrawl_robots_answers",
        "counter",
        "Those of them that got an answer, of any status.",
        "scheduler/gates/robots_redirects.py",
        lambda source: source.parts.gates.robots.answered,
    ),
    Metric(
        "bigcrawl_robots_seconds",
        "histogram",
        "Time of such a request.",
        "scheduler/gates/robots_redirects.py",
        lambda source: source.parts.gates.robots.fetch_times,
    ),
    "Redis",
    Metric(
        "bigcrawl_redis_round_trips",
        "counter",
        "Round trips to Redis, each of up to 512 calls.",
        "redisdb/client.py",
        lambda source: source.parts.crawl.client.round_trips,
    ),
    Metric(
        "bigcrawl_redis_wait_seconds",
        "counter",
        "Time of those round trips together, in which the node did other work.",
        "redisdb/client.py",
        lambda source: source.parts.crawl.client.round_trips_s,
    ),
    Metric(
        "bigcrawl_redis_doubtful_partitions",
        "gauge",
        "Partitions with a call whose reply was lost, until they are compared.",
        "redisdb/client.py",
        lambda source: len(source.parts.crawl.client.in_doubt),
    ),
    "Pages stored",
    of_stat("bigcrawl_warc_records", "WARC records written.", "bigcrawl/warc/records"),
    of_stat("bigcrawl_warc_bytes", "Bytes written to WARC files, compressed.", "bigcrawl/warc/bytes"),
    of_stat(
        "bigcrawl_warc_write_errors",
        "Failed writes; on a full disk that is one a second.",
        "bigcrawl/warc/write_errors",
    ),
    of_stat("bigcrawl_warc_indexed_files", "WARC files whose index was made.", "bigcrawl/warc/indexed_files"),
    of_stat("bigcrawl_warc_uploaded_files", "WARC files moved to the store.", "bigcrawl/warc/uploaded_files"),
    of_stat(
        "bigcrawl_warc_upload_errors",
        "How often the store of the WARC files refused, failed or did not answer.",
        "bigcrawl/warc/upload_errors",
    ),
)

METRICS: tuple[Metric, ...] = tuple(row for row in TABLE if isinstance(row, Metric))
