"""Parked URLs on disk: a chain for each host and level.

A URL is parked when its host has its share of hot URLs. Later URLs of the host go behind it, so that URLs of one host
and level are admitted in order of arrival. All chains share one log of segments, so a durable point syncs one file. A
chain is a list of extents, stretches of neighbouring blocks. Four neighbours of similar size are joined, so that a URL
is rewritten at most about six times. When three quarters of the log are dead, each step rewrites the segment with the
fewest live URLs.

Source: IRLbot §6.2 (BEAST). Differs: chains by host rather than queues by re-check interval.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from bigcrawl.scheduler.queues.front_queues import level_of
from bigcrawl.scheduler.queues.segments import BlockPlace, Segment, SegmentLog, in_blocks

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    from bigcrawl.scheduler.queues.epoch_directory import EpochDirectory
    from bigcrawl.scheduler.records.queued_url import QueuedUrl

_EXTENT_URLS_MAX = 4096
_JOIN_AT = 4

_COMPACT_SEGMENTS_MIN = 4
_COMPACT_RATIO = 4


class ChainExtent(NamedTuple):
    segment: int
    offset: int
    place: int
    urls: int


# The extents of each level of one host, never changed in place.
HostChains = dict[int, tuple[ChainExtent, ...]]


class ParkedState(NamedTuple):
    """Hosts in the order of their turns. Chains must not be changed."""

    segments: tuple[Segment, ...]
    next_number: int
    chains: Mapping[str, HostChains]


EMPTY_PARKED = ParkedState((), 0, MappingProxyType({}))


class ParkedQueues:
    def __init__(self, log: SegmentLog, chains: Mapping[str, HostChains]) -> None:
        self._log = log
        self._chains = dict(chains)
        self._pending: dict[str, dict[int, list[QueuedUrl]]] = {}
        self._on_disk = sum(e.urls for levels in chains.values() for c in levels.values() for e in c)
        self._waiting = 0

    @classmethod
    def restore(cls, epoch: EpochDirectory, state: ParkedState) -> ParkedQueues:
        log = SegmentLog(epoch, "park", state.segments, state.next_number)
        return cls(log, state.chains)

    def __len__(self) -> int:
        return self._on_disk + self._waiting

    def __contains__(self, host: str) -> bool:
        return host in self._chains

    def __repr__(self) -> str:
        return f"<ParkedQueues urls={len(self)} hosts={len(self._chains)} {self._log!r}>"

    @property
    def hosts(self) -> Sequence[str]:
        return list(self._chains)

    @property
    def host_count(self) -> int:
        return len(self._chains)

    def urls_of(self, host: str) -> int:
        on_disk = sum(extent.urls for chain in self._chains.get(host, {}).values() for extent in chain)
        return on_disk + sum(map(len, self._pending.get(host, {}).values()))

    def longest(self, others: Mapping[str, int], without: Container[str] = ()) -> tuple[str, int]:
        """Return the host with the most URLs, counting `others` too, and their number. The queues must be flushed."""
        best, most = "", 0
        for host, urls in others.items():
            if urls > most and host not in self._chains and host not in without:
                best, most = host, urls
        for host, levels in self._chains.items():
            urls = others.get(host, 0) + sum(extent.urls for chain in levels.values() for extent in chain)
            if urls > most and host not in without:
                best, most = host, urls
        return best, most

    @property
    def log(self) -> SegmentLog:
        return self._log

    def fork(self) -> ParkedQueues:
        assert not self._pending, "only flushed queues are forked"
        other = ParkedQueues(self._log.fork(), {})
        other._chains = self._chains.copy()
        other._on_disk = self._on_disk
        return other

    def state(self) -> ParkedState:
        assert not self._pending, "a queue is flushed before its state is written"
        return ParkedState(self._log.segments, self._log.next_number, self._chains)

    def names(self) -> list[str]:
        return self._log.names()

    def append(self, url: QueuedUrl) -> None:
        self._chains.setdefault(url.host, {})
        level = level_of(url.priority)
        self._pending.setdefault(url.host, {}).setdefault(level, []).append(url)
        self._waiting += 1

    def take(self, host: str, limit: int) -> list[QueuedUrl]:
        """Remove and return up to `limit` URLs of a parked host, highest level first. The host then goes last."""
        taken: list[QueuedUrl] = []
        levels = dict(self._chains.pop(host))
        pending = self._pending.get(host, {})
        for level in sorted({*levels, *pending}, reverse=True):
            if len(taken) >= limit:
                break
            taken += self._take_level(levels, level, limit - len(taken))
            fresh = pending.get(level)
            if fresh and len(taken) < limit:
                part = fresh[: limit - len(taken)]
                del fresh[: len(part)]
                if not fresh:
                    del pending[level]
                self._waiting -= len(part)
                taken += part
        if not pending:
            self._pending.pop(host, None)
        if levels or pending:
            self._chains[host] = levels
        return taken

    def flush(self) -> None:
        places = []
        for host, levels in self._pending.items():
            for level, urls in levels.items():
                chain = self._chains[host].get(level, ())
                keep = len(chain) - extents_to_join([extent.urls for extent in chain], len(urls))
                joined = [url for extent in chain[keep:] for url in self._read_extent(extent)]
                places.append((host, level, chain[:keep], [*joined, *urls]))
        self._write_chains(places)
        self._on_disk += self._waiting
        self._waiting = 0
        self._pending = {}
        self._drop_dead()
        self._compact_segments()
        self._log.forget_ahead()

    def _take_level(self, levels: HostChains, level: int, limit: int) -> list[QueuedUrl]:
        taken: list[QueuedUrl] = []
        chain = levels.get(level, ())
        while chain and len(taken) < limit:
            part, rest = self._take_from(chain[0], limit - len(taken))
            taken += part
            chain = chain[1:] if rest is None else (rest, *chain[1:])
        if chain:
            levels[level] = chain
        else:
            levels.pop(level, None)
        self._on_disk -= len(taken)
        return taken

    def _take_from(self, extent: ChainExtent, limit: int) -> tuple[list[QueuedUrl], ChainExtent | None]:
        urls, behind = self._log.read(extent.segment, extent.offset)
        part = urls[extent.place : extent.place + min(limit, extent.urls)]
        left = extent.urls - len(part)
        if not left:
            return part, None
        if extent.place + len(part) < len(urls):
            return part, extent._replace(place=extent.place + len(part), urls=left)
        return part, ChainExtent(extent.segment, behind, 0, left)

    def _read_extent(self, extent: ChainExtent) -> Iterator[QueuedUrl]:
        rest: ChainExtent | None = extent
        while rest is not None:
            part, rest = self._take_from(rest, rest.urls)
            yield from part

    def _write_chains(self, chains: Iterable[tuple[str, int, tuple[ChainExtent, ...], list[QueuedUrl]]]) -> None:
        chains = list(chains)
        if not chains:
            return
        places = iter(self._log.append(block for *_, urls in chains for block in in_blocks(urls)))
        for host, level, kept, urls in chains:
            extents = list(kept)
            left = len(urls)
            fresh = len(extents)
            while left:
                place = next(places)
                left -= place.urls
                _extend_chain(extents, place, fresh)
            self._chains[host] = {**self._chains[host], level: tuple(extents)}

    def _drop_dead(self) -> None:
        live = self._live_counts()
        for segment in self._log.segments:
            if segment.number not in live and segment.number != self._log.open_tail:
                self._log.forget_segment(segment.number)

    def _compact_segments(self) -> None:
        segments = self._log.segments
        written = sum(segment.urls for segment in segments)
        if len(segments) < _COMPACT_SEGMENTS_MIN or self._on_disk * _COMPACT_RATIO > written:
            return
        live = self._live_counts()
        victim = min(segments[:-1], key=lambda segment: live.get(segment.number, 0)).number
        for host, levels in list(self._chains.items()):
            for level, chain in levels.items():
                if any(extent.segment == victim for extent in chain):
                    self._move_chain(host, level, chain, victim)
        self._drop_dead()

    def _move_chain(self, host: str, level: int, chain: tuple[ChainExtent, ...], victim: int) -> None:
        extents: list[ChainExtent] = []
        for extent in chain:
            if extent.segment != victim:
                extents.append(extent)
                continue
            fresh = len(extents)
            for place in self._log.append(in_blocks(list(self._read_extent(extent)))):
                _extend_chain(extents, place, fresh)
        self._chains[host] = {**self._chains[host], level: tuple(extents)}

    def _live_counts(self) -> dict[int, int]:
        live: dict[int, int] = {}
        for levels in self._chains.values():
            for chain in levels.values():
                for extent in chain:
                    live[extent.segment] = live.get(extent.segment, 0) + extent.urls
        return live

    def _check(self) -> None:
        self._log._check()
        live = self._live_counts()
        segments = {segment.number: segment for segment in self._log.segments}
        assert self._on_disk == sum(live.values()), "the chains hold all URLs on disk"
        assert all(live[number] <= segments[number].urls for number in live), "extents lie in segments"
        for host, levels in self._chains.items():
            assert levels or host in self._pending, "a host without parked URLs has no chain"
            assert all(e.urls > 0 for chain in levels.values() for e in chain), "no extent is empty"


def extents_to_join(counts: Sequence[int], added: int) -> int:
    joined, total = 0, added
    while True:
        tier = _tier_of(total)
        alike, sum_ = 0, total
        for count in reversed(counts[: len(counts) - joined]):
            if _tier_of(count) > tier or sum_ + count > _EXTENT_URLS_MAX:
                break
            alike, sum_ = alike + 1, sum_ + count
        if alike + 1 < _JOIN_AT:
            return joined
        joined, total = joined + alike, sum_


def _tier_of(count: int) -> int:
    return (count.bit_length() - 1) // 2


def _extend_chain(extents: list[ChainExtent], place: BlockPlace, fresh: int) -> None:
    if len(extents) > fresh and extents[-1].segment == place.segment:
        extents[-1] = extents[-1]._replace(urls=extents[-1].urls + place.urls)
    else:
        extents.append(ChainExtent(place.segment, place.offset, 0, place.urls))
