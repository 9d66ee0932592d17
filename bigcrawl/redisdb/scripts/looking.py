from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from bigcrawl.redisdb.replies import pairs_of, scores_of
from bigcrawl.redisdb.scripts.call import Call
from bigcrawl.redisdb.scripts.crawl import NodesMade

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bigcrawl.redisdb.keys import CrawlKeys, PartitionKeys


class CrawlView(NamedTuple):
    """Nodes' JSON reports and output, operators' orders, and the crawl record without its list of suffixes."""

    now_ms: int
    reports: Mapping[str, str]
    record: Mapping[str, bytes]
    control: Mapping[str, bytes]
    made: NodesMade


def look_crawl(keys: CrawlKeys, lease_ms: int, now_ms: int = 0) -> Call[CrawlView]:
    def parse(reply: list[Any]) -> CrawlView:
        reports, record, control = (
            {name.decode("utf-8", "replace"): value for name, value in zip(words[::2], words[1::2], strict=True)}
            for words in reply[1:4]
        )
        texts = {node: text.decode() for node, text in reports.items()}
        return CrawlView(int(reply[0]), texts, record, control, NodesMade(*reply[4]))

    names = (keys.crawl, keys.nodes, keys.beats, keys.control, keys.counts)
    return Call("look_crawl", names, (now_ms, lease_ms), parse)


class HostView(NamedTuple):
    """A host in Redis. `ready_ms` is its next fetch time, if it waits; the record lives for `left_ms`."""

    now_ms: int
    node: str
    queued: int
    taken: int
    ready_ms: float
    left_ms: int
    record: Mapping[bytes, bytes]
    next_members: Sequence[bytes]


def look_host(keys: PartitionKeys, host: str, urls_max: int, now_ms: int = 0) -> Call[HostView]:
    def parse(reply: list[Any]) -> HostView:
        now, node, queued, taken, ready, left, record, members = reply
        return HostView(now, node.decode(), queued, taken, float(ready or 0), left, dict(pairs_of(record)), members)

    names = (keys.owner, keys.ready, keys.busy, keys.back, keys.host)
    return Call("look_host", names, (now_ms, host, urls_max), parse, beside=(keys.leases,))


class UrlView(NamedTuple):
    """A URL in Redis, and the inbox of its partition.

    Attributes:
        member: as Redis holds it; empty if it is neither taken nor among the URLs that were searched.
        ahead: URLs that are handed out before it; -1 if it is taken.
        goes_on: where to continue the search of the back queue; None at its end.
        trimmed: the last id that the inbox may have lost.
    """

    member: bytes
    ahead: int
    goes_on: str | None
    deaths: bytes
    letter: bytes
    trimmed: str
    entries: Sequence[tuple[bytes, Sequence[bytes]]]


class UrlSought(NamedTuple):
    """A URL to find, by host and key; `beginning` is the start of its member after the sequence number."""

    host: str
    key: int
    beginning: bytes


def look_url(
    keys: PartitionKeys, sought: UrlSought, urls_from: str, urls_max: int, entries_after: str, entries_max: int
) -> Call[UrlView]:
    """Search a back queue from an order on, and read the inbox after an id; an empty id means the last merged one."""

    def parse(reply: list[Any]) -> UrlView:
        member, ahead, on, deaths, letter, trimmed, entries = reply
        return UrlView(member, ahead, on.decode() or None, deaths, letter, trimmed.decode(), entries)

    names = (keys.taken, keys.back, keys.deaths, keys.dead, keys.state, keys.inbox)
    values = (*sought, urls_from, urls_max, entries_after, entries_max)
    return Call("look_url", names, values, parse)


class HostRow(NamedTuple):
    """A host in a list; `due_ms` is 0 for a busy host, and at least `RETIRED_MS` for a retired one."""

    host: str
    state: str
    due_ms: int
    queued: int
    taken: int
    delay_ms: int
    failures: int
    why: str


class HostRows(NamedTuple):
    now_ms: int
    is_whole: bool
    rows: list[HostRow]


def list_hosts(
    partitions: Sequence[PartitionKeys], state: str, name: str, listed_max: int, looked_max: int, now_ms: int = 0
) -> Call[HostRows]:
    """List the hosts due first, of at most `looked_max` examined; with `name`, only that host and those below it."""

    def parse(reply: list[Any]) -> HostRows:
        found = []
        for at in range(2, len(reply), 8):
            host, state, due, queued, taken, delay_ms, failures, why = reply[at : at + 8]
            texts = host.decode(), state.decode(), why.decode("utf-8", "replace")
            found.append(HostRow(*texts[:2], int(due), queued, taken, delay_ms, failures, texts[2]))
        return HostRows(reply[0], bool(reply[1]), found)

    names = tuple(name for keys in partitions for name in (keys.ready, keys.busy, keys.snoozed, keys.back, keys.host))
    return Call("list_hosts", names, (now_ms, state, name, listed_max, looked_max), parse)


class PldView(NamedTuple):
    """A PLD's limits set by hand and its failures with examples, and the distributions of in-degrees."""

    rules: Mapping[bytes, bytes]
    in_degrees: Sequence[bytes]
    failed: Sequence[tuple[str, float]]
    examples: Sequence[bytes]


def look_pld(keys: CrawlKeys, pld: str) -> Call[PldView]:
    def parse(reply: list[Any]) -> PldView:
        return PldView(dict(pairs_of(reply[0])), reply[1], scores_of(reply[2]), reply[3])

    return Call("look_pld", (keys.rules, keys.in_degrees, keys.errors, keys.examples), (pld,), parse)


class Orders(NamedTuple):
    """Operators' orders about URLs, and the reports of all nodes."""

    blacklist: Mapping[bytes, bytes]
    rules: Mapping[bytes, bytes]
    discovery: bytes
    reports: Sequence[bytes]


def look_orders(keys: CrawlKeys, discovery_field: str) -> Call[Orders]:
    def parse(reply: list[Any]) -> Orders:
        return Orders(dict(pairs_of(reply[0])), dict(pairs_of(reply[1])), reply[2], reply[3])

    return Call("look_orders", (keys.blacklist, keys.rules, keys.control, keys.nodes), (discovery_field,), parse)


class WatchedCrawl(NamedTuple):
    """What nodes sent last; for a watched host also its delays and the blacklist, as set by hand."""

    recent: Sequence[tuple[bytes, bytes]]
    delays: Mapping[bytes, bytes]
    blacklist: Mapping[bytes, bytes]


def watch_crawl(keys: CrawlKeys, until_ms: int, host: str = "") -> Call[WatchedCrawl]:
    def parse(reply: list[Any]) -> WatchedCrawl:
        recent, delays, blacklist = map(pairs_of, reply)
        return WatchedCrawl(list(recent), dict(delays), dict(blacklist))

    names = (keys.crawl, keys.control, keys.recent, keys.delays, keys.blacklist)
    return Call("watch_crawl", names, (until_ms, host), parse)
