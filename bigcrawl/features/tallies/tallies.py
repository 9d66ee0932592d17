"""All tallies of a node, or of a crawl, as one value: zlib of msgpack `[VERSION, {name: value}]`, 1 to 20 KB."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgpack
from isal import isal_zlib

from bigcrawl.exceptions import BigcrawlError
from bigcrawl.features.tallies.gaps import GapCounts, NamedGap
from bigcrawl.features.tallies.names import DEPTH_MAX, DistinctCounter, FrequentName, FrequentNames, SampledCounts
from bigcrawl.media_types import type_told

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

VERSION: Final = 1
BYTES_MAX: Final = 4 << 20
"""The largest unpacked tallies."""

MEDIA_TYPES_MAX: Final = 128
ENCODINGS_MAX: Final = 32
PLDS_MAX: Final = 512
SIZE_BITS: Final = 40
"""Larger sizes share the last bucket."""

NO_ANSWER: Final = "no answer"
NO_TYPE: Final = "(none)"
MALFORMED: Final = "(malformed)"
NOT_PACKED: Final = "identity"

_MEDIA_TYPE: Final = re.compile(r"[a-z0-9!#$&^_.+-]{1,60}/[a-z0-9!#$&^_.+-]{1,60}")
_ENCODING: Final = re.compile(rb"[a-z0-9-]{1,20}(, ?[a-z0-9-]{1,20}){0,3}")


class TalliesFormatError(BigcrawlError):
    pass


class Tallies:
    """The counts of one node, or the sum of several.

    Attributes:
        sizes: 200 answers, by the bit length of their transferred bytes.
        html: how many of these are HTML pages.
        other_answers: answers with another status.
        media_types: 200 answers and their bytes, by declared media type.
        unpacked: decompressed answers, from `unpacked_from` bytes to `unpacked_bytes` in all.
        unread: answered URLs whose page was not read in full, by the limit or filter that decided so.
        servers: distinct server addresses.
        host_gaps: gaps from the end of a fetch to the next start at the same host.
        gaps: host, server and space gaps, by these names.
        server_gaps, space_gaps: gaps between two starts.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.sizes = [0] * (SIZE_BITS + 1)
        self.ok_bytes = self.html = self.other_answers = self.other_bytes = 0
        self.media_types = FrequentNames(MEDIA_TYPES_MAX)
        self.encodings = FrequentNames(ENCODINGS_MAX)
        self.unpacked = self.unpacked_from = self.unpacked_bytes = 0
        self.robots = FrequentNames(1_000)
        self.unread = FrequentNames(1_000)
        self.hosts, self.plds, self.servers = DistinctCounter(), DistinctCounter(), DistinctCounter()
        self.pages_by_pld = FrequentNames(PLDS_MAX)
        self.sampled_plds = SampledCounts(PLDS_MAX)
        self.host_gaps, self.server_gaps, self.space_gaps = GapCounts(), GapCounts(), GapCounts()
        self.gaps = {"host": self.host_gaps, "server": self.server_gaps, "space": self.space_gaps}
        self.urls_sent = self.urls_sent_elsewhere = self.urls_repeated = self.look_ups = self.sent_bytes = 0

    @property
    def ok_answers(self) -> int:
        return sum(self.sizes)

    def record_answer(self, status: int, media_type: bytes | None, encoding: bytes | None, body_bytes: int) -> None:
        if status != 200:
            self.other_answers += 1
            self.other_bytes += body_bytes
            return
        self.sizes[min(body_bytes.bit_length(), SIZE_BITS)] += 1
        self.ok_bytes += body_bytes
        name = media_type_of(media_type)
        self.html += name == "text/html"
        self.media_types.count_name(name, body_bytes)
        if encoding and (packed := encoding_of(encoding)) != NOT_PACKED:
            self.encodings.count_name(packed, body_bytes)

    def record_unpacked(self, packed_bytes: int, body_bytes: int) -> None:
        self.unpacked += 1
        self.unpacked_from += packed_bytes
        self.unpacked_bytes += body_bytes

    def record_robots(self, status: int | None, body_bytes: int) -> None:
        self.robots.count_name(NO_ANSWER if status is None else str(status), body_bytes)

    def record_page(self, host: str, pld: str, address: str, body_bytes: int) -> None:
        self.hosts.add(host)
        self.plds.add(pld)
        if address:
            self.servers.add(address)
        self.pages_by_pld.count_name(pld, body_bytes)
        self.sampled_plds.count_name(pld)

    def record_part_read(self, reason: str) -> None:
        """Record that a page was read only in part, or not at all."""
        self.unread.count_name(reason)

    def record_look_up(self) -> None:
        self.look_ups += 1

    def record_repeated(self, urls: int) -> None:
        self.urls_repeated += urls

    def record_sent_bytes(self, sent_bytes: int) -> None:
        self.sent_bytes += sent_bytes

    def record_sent(self, urls: int, *, is_elsewhere: bool) -> None:
        self.urls_sent += urls
        if is_elsewhere:
            self.urls_sent_elsewhere += urls

    def add(self, other: Tallies) -> None:
        self.sizes = [mine + theirs for mine, theirs in zip(self.sizes, other.sizes, strict=True)]
        for name in _NUMBERS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in _FREQUENT:
            theirs: FrequentNames = getattr(other, name)
            getattr(self, name).add_all(theirs.rows(), theirs.others, theirs.others_amount)
        for name in _DISTINCT:
            getattr(self, name).add_all(getattr(other, name))
        self.sampled_plds.add_all(other.sampled_plds.counts, other.sampled_plds.depth)
        for name in _GAPS:
            gaps: GapCounts = getattr(other, name)
            getattr(self, name).add_all(gaps.counts, gaps.tightest)

    def to_bytes(self) -> bytes:
        sample = self.sampled_plds
        values: dict[str, Any] = {name: getattr(self, name) for name in _NUMBERS}
        values["sizes"] = self.sizes
        values["sampled_plds"] = [sample.depth, dict(sample.counts)]
        values |= {name: _written_frequent(getattr(self, name)) for name in _FREQUENT}
        values |= {name: getattr(self, name).to_bytes() for name in _DISTINCT}
        values |= {name: _written_gaps(getattr(self, name)) for name in _GAPS}
        return isal_zlib.compress(msgpack.packb([VERSION, values]))

    @classmethod
    def from_bytes(cls, data: bytes) -> Tallies:
        return _unpack_with(data, lambda values: _read_tallies(cls(), values))


_NUMBERS: Final = (
    *("ok_bytes", "html", "other_answers", "other_bytes", "unpacked", "unpacked_from", "unpacked_bytes"),
    *("urls_sent", "urls_sent_elsewhere", "urls_repeated", "look_ups", "sent_bytes"),
)
_FREQUENT: Final = ("media_types", "encodings", "robots", "pages_by_pld", "unread")
_DISTINCT: Final = ("hosts", "plds", "servers")
_GAPS: Final = ("host_gaps", "server_gaps", "space_gaps")


def pages_by_pld_of(data: bytes) -> FrequentNames:
    def read(values: dict[str, Any]) -> FrequentNames:
        frequent = FrequentNames(PLDS_MAX)
        _read_frequent(frequent, values["pages_by_pld"])
        return frequent

    return _unpack_with(data, read)


def _unpack_with(data: bytes, read: Callable[[dict[str, Any]], T]) -> T:
    """Unpack tallies and return the result of `read`, which may raise any error on damaged ones."""
    try:
        version, values = msgpack.unpackb(isal_zlib.decompressobj().decompress(data, BYTES_MAX))
        found = read(values) if version == VERSION else None
    except Exception as error:
        raise TalliesFormatError(f"tallies cannot be read: {error!r}") from error
    if found is None:
        raise TalliesFormatError(f"the version of tallies is {version}; this bigcrawl reads {VERSION}")
    return found


def _written_frequent(frequent: FrequentNames) -> list[Any]:
    return [frequent.others, frequent.others_amount, [list(row) for row in frequent.rows()]]


def _written_gaps(gaps: GapCounts) -> list[Any]:
    return [gaps.counts, [list(gap) for gap in gaps.tightest]]


def _read_frequent(mine: FrequentNames, value: Any) -> None:
    mine.add_all((FrequentName(*row) for row in value[2]), *value[:2])


def _read_tallies(tallies: Tallies, values: dict[str, Any]) -> Tallies:
    readers: dict[str, Callable[[Any, Any], None]] = {
        **dict.fromkeys(_FREQUENT, _read_frequent),
        **dict.fromkeys(_DISTINCT, lambda mine, value: mine.add_all(DistinctCounter(value))),
        **dict.fromkeys(_GAPS, lambda mine, value: mine.add_all(value[0], (NamedGap(*gap) for gap in value[1]))),
        "sampled_plds": lambda mine, value: mine.add_all(value[1], min(int(value[0]), DEPTH_MAX)),
    }
    for name in _NUMBERS:
        setattr(tallies, name, int(values.get(name, 0)))  # nodes of an earlier version did not count all
    tallies.sizes = [int(count) for _, count in zip(tallies.sizes, values["sizes"], strict=True)]
    for name, read in readers.items():
        if name in values or name != "unread":  # which nodes of an earlier version did not count
            read(getattr(tallies, name), values[name])
    return tallies


@lru_cache(1_024)
def media_type_of(header: bytes | None) -> str:
    if not header or not header.strip():
        return NO_TYPE
    name = type_told((header,))
    return name if _MEDIA_TYPE.fullmatch(name) else MALFORMED


@lru_cache(256)
def encoding_of(header: bytes) -> str:
    name = header[:1_000].strip().lower()
    return name.decode("ascii") if _ENCODING.fullmatch(name) else MALFORMED
