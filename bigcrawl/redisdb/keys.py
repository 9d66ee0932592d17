"""Every Redis key of bigcrawl: pattern, type, purpose.

Partition keys share one hash tag, so that a script's keys live on one node of a Redis Cluster:

    bigcrawl:{<crawl>:p<id>}:owner       hash    node, epoch, generation, lease_ms, token, server, rest
    bigcrawl:{<crawl>:p<id>}:state       hash    counters, last admitted batch, the owner's last commit
    bigcrawl:{<crawl>:p<id>}:inbox       stream  URLs (b), edges (e), outcomes (o), keys to forget (f), rows (r),
                                                 revisits (v), observations (c)
    bigcrawl:{<crawl>:p<id>}:sender:<node>  string  session and number of the node's last batch here; kept a day
    bigcrawl:{<crawl>:p<id>}:ready       zset    ready heap: next fetch ms -> host
    bigcrawl:{<crawl>:p<id>}:busy        hash    host -> URLs taken of it
    bigcrawl:{<crawl>:p<id>}:taken       hash    seq -> taken URL, until acknowledged
    bigcrawl:{<crawl>:p<id>}:deaths      hash    seq -> how many nodes died while the URL was in process
    bigcrawl:{<crawl>:p<id>}:dead        hash    key of a URL that kills or hangs nodes -> dead letter
    bigcrawl:{<crawl>:p<id>}:batches     hash    admit batch number -> its keys, until the manifest is durable
    bigcrawl:{<crawl>:p<id>}:records     zset    ms of the last write -> host that has robots rules in its record
    bigcrawl:{<crawl>:p<id>}:snoozed     zset    next fetch ms after a long back-off -> host; retired ones from 1e15 on
    bigcrawl:{<crawl>:p<id>}:rules       hash    host -> bytes of its robots rules; "" -> their sum
    bigcrawl:{<crawl>:p<id>}:back:<host> zset    back queue: order -> "<seq>:<URL>"
    bigcrawl:{<crawl>:p<id>}:host:<host> hash    host record: robots rules, next allowed fetch ms, delay, failures, lent

Keys of a crawl share its tag. Gates and the clock belong to no crawl; gates are spread over a few tags:

    bigcrawl:{<crawl>}:crawl             hash    crawl record; announcement of its end; claims of start requests
    bigcrawl:{<crawl>}:nodes             hash    node -> JSON report
    bigcrawl:{<crawl>}:settings          hash    node -> JSON of the settings that it runs with
    bigcrawl:{<crawl>}:beats             zset    ms of the last heartbeat -> node
    bigcrawl:{<crawl>}:leases:<block>    hash    node -> its lease for its partitions in a block; not on a cluster
    bigcrawl:{<crawl>}:counts            hash    what all nodes made -> its sum; with a node, what it made so far
    bigcrawl:{<crawl>}:arrivals          stream  partitions that got entries from other nodes than their owners (p)
    bigcrawl:{<crawl>}:in_degrees        hash    partition -> distribution of the in-degrees of its PLDs
    bigcrawl:{<crawl>}:rules             hash    host, PLD or pattern -> JSON of its limits, set by hand
    bigcrawl:{<crawl>}:control           hash    operators' orders: speed, pauses, checkpoint; counters of changes
    bigcrawl:{<crawl>}:blacklist         hash    host, PLD, pattern or range -> 1; 0 removes an entry of the settings
    bigcrawl:{<crawl>}:speed             hash    earliest start of the next fetch, by pages and by bytes a second
    bigcrawl:{<crawl>}:delays            hash    host or PLD -> JSON of its delays, set by hand
    bigcrawl:{<crawl>}:errors            zset    failed fetches -> reason and PLD
    bigcrawl:{<crawl>}:examples          hash    reason and PLD -> time and URL of the last failed fetch
    bigcrawl:{<crawl>}:history           hash    number of a sample of the crawl's figures -> its time and values
    bigcrawl:{<crawl>}:events            zset    ms -> what happened to the crawl: nodes, orders, its end
    bigcrawl:{<crawl>}:recent            hash    node -> JSON of its last fetches, items and lines of the log
    bigcrawl:{<crawl>}:fingerprints      hash    bucket -> fingerprints of URLs that another crawler knew, imported
    bigcrawl:{<crawl>}:origins           stream  where nodes have stored payloads, if copies refer over nodes
    bigcrawl:{<crawl>}:tallies           hash    node, or gone -> its counts for the crawl's report
    bigcrawl:{<crawl>}:space:<name>      string  gate of a PLD or of a user's group, like that of a server
    bigcrawl:{<crawl>}:answer:<cell>     string  DNS answer for the last host whose hash fell into this cell
    bigcrawl:{gate<n>}:server:<address>  string  gate of a server: earliest next start, for the last node and for others
    bigcrawl:{gate<n>}:host:<host>       hash    the crawl that holds a host, and the time when others may have it
    bigcrawl:{clock}:clock               hash    ms to add to the server's clock; the last time returned, and its node
    bigcrawl:{clock}:crawls              hash    node of any crawl -> end of its lease, and whether it holds hosts
    bigcrawl:{clock}:known               hash    crawl -> JSON of its spider and its last figures

Keys for a user's list, from which spiders take entries, have its hash tag:

    bigcrawl:list:{<list>}:entries       hash    batch -> entries that were taken and are not in an inbox yet
    bigcrawl:list:{<list>}:leases        zset    end of its lease ms -> batch

To add a key, write it here, give it an attribute, run `make docs`, and describe its fields in docs/redis-keys.md.
"""

from __future__ import annotations

import re
import zlib
from functools import lru_cache

CLOCK = "bigcrawl:{clock}:clock"
CRAWLS = "bigcrawl:{clock}:crawls"
KNOWN = "bigcrawl:{clock}:known"
_HASH_TAG = re.compile(r"^[^{]*\{[^}]+\}")
GATE_TAGS = 8
LEASES_TOGETHER = 256  # more would make claims slow, which read them


class PartitionKeys:
    """The keys of one partition; `sender`, `back` and `host` are prefixes of keys."""

    __slots__ = (
        *("partition", "owner", "state", "inbox", "sender", "ready", "busy", "taken", "batches", "records", "snoozed"),
        *("rules", "deaths", "dead", "leases"),
        *("back", "host", "for_exchange"),
    )

    def __init__(self, crawl: str, partition: int) -> None:
        self.partition = partition
        prefix = f"bigcrawl:{{{crawl}:p{partition}}}:"
        self.owner = prefix + "owner"
        self.state = prefix + "state"
        self.inbox = prefix + "inbox"
        self.sender = prefix + "sender:"
        self.ready = prefix + "ready"
        self.busy = prefix + "busy"
        self.taken = prefix + "taken"
        self.batches = prefix + "batches"
        self.records = prefix + "records"
        self.snoozed = prefix + "snoozed"
        self.rules = prefix + "rules"
        self.deaths = prefix + "deaths"
        self.dead = prefix + "dead"
        self.leases = f"bigcrawl:{{{crawl}}}:leases:{partition // LEASES_TOGETHER}"
        self.back = prefix + "back:"
        self.host = prefix + "host:"
        # Made once: `exchange_urls` is called for almost every page.
        hosts = (self.ready, self.busy, self.taken, self.back, self.host)
        self.for_exchange = (self.owner, self.state, *hosts, self.inbox, self.snoozed)


@lru_cache(4_096)  # 2 KB each
def partition_keys(crawl: str, partition: int) -> PartitionKeys:
    return PartitionKeys(crawl, partition)


def all_keys(crawl: str) -> str:
    return f"bigcrawl:{{{crawl}[:}}]*"


class CrawlKeys:
    __slots__ = ("_prefix",)

    def __init__(self, crawl: str) -> None:
        self._prefix = f"bigcrawl:{{{crawl}}}:"

    @property
    def crawl(self) -> str:
        return self._prefix + "crawl"

    @property
    def nodes(self) -> str:
        return self._prefix + "nodes"

    @property
    def settings(self) -> str:
        return self._prefix + "settings"

    @property
    def beats(self) -> str:
        return self._prefix + "beats"

    @property
    def counts(self) -> str:
        return self._prefix + "counts"

    @property
    def arrivals(self) -> str:
        return self._prefix + "arrivals"

    @property
    def in_degrees(self) -> str:
        return self._prefix + "in_degrees"

    @property
    def rules(self) -> str:
        return self._prefix + "rules"

    @property
    def control(self) -> str:
        return self._prefix + "control"

    @property
    def blacklist(self) -> str:
        return self._prefix + "blacklist"

    @property
    def delays(self) -> str:
        return self._prefix + "delays"

    @property
    def space(self) -> str:
        return self._prefix + "space:"

    @property
    def errors(self) -> str:
        return self._prefix + "errors"

    @property
    def examples(self) -> str:
        return self._prefix + "examples"

    @property
    def history(self) -> str:
        return self._prefix + "history"

    @property
    def events(self) -> str:
        return self._prefix + "events"

    @property
    def recent(self) -> str:
        return self._prefix + "recent"

    @property
    def fingerprints(self) -> str:
        return self._prefix + "fingerprints"

    @property
    def origins(self) -> str:
        return self._prefix + "origins"

    @property
    def tallies(self) -> str:
        return self._prefix + "tallies"

    @property
    def speed(self) -> str:
        return self._prefix + "speed"

    def answer(self, cell: int) -> str:
        return f"{self._prefix}answer:{cell}"


class ListKeys:
    __slots__ = ("entries", "leases", "list")

    def __init__(self, name: str) -> None:
        self.list = name
        prefix = f"bigcrawl:list:{name if _HASH_TAG.search(name) else f'{{{name}}}'}:"
        self.entries = prefix + "entries"
        self.leases = prefix + "leases"


def gate_prefix(address: str) -> str:
    return f"bigcrawl:{{gate{zlib.crc32(address.encode()) % GATE_TAGS}}}:server:"


def host_prefix(host: str) -> str:
    return f"bigcrawl:{{gate{zlib.crc32(host.encode()) % GATE_TAGS}}}:host:"
