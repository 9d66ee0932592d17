"""Every Redis key of bigcrawl: pattern, type, purpose.

Partition keys share one hash tag, so that a script's keys live on one node of a Redis Cluster:

    bigcrawl:{<crawl>:p<id>}:owner       hash    node, epoch, lease_ms, token, wanted_by
    bigcrawl:{<crawl>:p<id>}:state       hash    counters, last admitted batch, what the owner last committed
    bigcrawl:{<crawl>:p<id>}:inbox       stream  discovered URLs, not yet merged; field b = encoded batch
    bigcrawl:{<crawl>:p<id>}:sender:<node>  string  number of the last batch accepted from the node; kept a day
    bigcrawl:{<crawl>:p<id>}:ready       zset    ready heap: next fetch ms -> host
    bigcrawl:{<crawl>:p<id>}:busy        hash    host -> URLs taken of it
    bigcrawl:{<crawl>:p<id>}:taken       hash    seq -> taken URL, until acknowledged
    bigcrawl:{<crawl>:p<id>}:batches     hash    admit batch number -> its keys, until the manifest is durable
    bigcrawl:{<crawl>:p<id>}:records     zset    written ms -> host, the hosts that have a record
    bigcrawl:{<crawl>:p<id>}:back:<host> zset    back queue: order -> "<seq>:<URL>"
    bigcrawl:{<crawl>:p<id>}:host:<host> hash    host record: robots rules, next allowed fetch ms, lent

Crawl keys share the crawl's tag; gates stand above all crawls, spread over a few tags:

    bigcrawl:{<crawl>}:crawl             hash    crawl record: what fixes keys and places; finished; start:<digest>
    bigcrawl:{<crawl>}:nodes             hash    node -> JSON report
    bigcrawl:{<crawl>}:beats             zset    last beat ms -> node
    bigcrawl:{gate<n>}:server:<address>  string  next allowed start ms

To add a key: write it here first, then give it a property; scripts get keys from here and nowhere else.
"""

from __future__ import annotations

import zlib

GATE_TAGS = 8  # spreads the gates over a Redis Cluster; more buys nothing on one server


class PartitionKeys:
    """The keys of one partition."""

    __slots__ = ("_prefix", "partition")

    def __init__(self, crawl: str, partition: int) -> None:
        self.partition = partition
        self._prefix = f"bigcrawl:{{{crawl}:p{partition}}}:"

    @property
    def owner(self) -> str:
        return self._prefix + "owner"

    @property
    def state(self) -> str:
        return self._prefix + "state"

    @property
    def inbox(self) -> str:
        return self._prefix + "inbox"

    @property
    def sender(self) -> str:
        """The prefix that a node id is appended to."""
        return self._prefix + "sender:"

    @property
    def ready(self) -> str:
        return self._prefix + "ready"

    @property
    def busy(self) -> str:
        return self._prefix + "busy"

    @property
    def taken(self) -> str:
        return self._prefix + "taken"

    @property
    def batches(self) -> str:
        return self._prefix + "batches"

    @property
    def records(self) -> str:
        return self._prefix + "records"

    @property
    def back(self) -> str:
        """The prefix that a host is appended to."""
        return self._prefix + "back:"

    @property
    def host(self) -> str:
        """The prefix that a host is appended to."""
        return self._prefix + "host:"


class CrawlKeys:
    """The keys of one crawl that belong to no partition."""

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
    def beats(self) -> str:
        return self._prefix + "beats"


def gate_key(address: str) -> str:
    """The key of a server's gate; all crawls on the Redis share it."""
    return f"bigcrawl:{{gate{zlib.crc32(address.encode()) % GATE_TAGS}}}:server:{address}"
