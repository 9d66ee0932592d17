"""All tallies of a node, or of a crawl, as one value.

They are written as zlib of msgpack `[VERSION, {name: value}]`: 1 to 20 KB.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgpack
from isal import isal_zlib

from bigcrawl.exceptions import BigcrawlError
from bigcrawl.media_types import type_told
from bigcrawl.tallies.distinct import Distinct
from bigcrawl.tallies.frequent import Frequent, FrequentName
from bigcrawl.tallies.gaps import Gaps, NamedGap
from bigcrawl.tallies.sampled import DEPTH_MAX, Sampled

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

VERSION: Final = 1
BYTES_MAX: Final = 4 << 20
"""Unpacked; no tallies are larger."""

MEDIA_TYPES_MAX: Final = 128
ENCODINGS_MAX: Final = 32
PLDS_MAX: Final = 512
SIZE_BITS: Final = 40
"""Sizes of more bits share the last bucket."""

NO_ANSWER: Final = "no answer"
NO_TYPE: Final = "(none)"
MALFORMED: Final = "(malformed)"
NOT_PACKED: Final = "identity"

_MEDIA_TYPE: Final = re.compile(r"[a-z0-9!#$&^_.+-]{1,60}/[a-z0-9!#$&^_.+-]{1,60}")
_ENCODING: Final = re.compile(rb"[a-z0-9-]{1,20}(, ?[a-z0-9-]{1,20}){0,3}")


class TalliesFormatError(BigcrawlError):
    """The bytes are not tallies that this version can read."""


class Tallies:
    """What one node has counted, or several together.

    Attributes:
        sizes: answers of status 200 by the bits of their size in bytes, as transferred: 0, 1, 2 to 3, 4 to 7, ...
        ok_bytes: the bytes of their bodies.
        html: those of them that are HTML pages.
        other_answers: answers of another status, and `other_bytes` of their bodies.
        media_types: answers of status 200 by the media type that they claim, with bytes.
        encodings: those that were packed, by Content-Encoding, with bytes.
        unpacked: packed answers that were unpacked, from `unpacked_from` bytes to `unpacked_bytes`.
        robots: answers to requests for robots.txt by status, redirects included; with bytes of bodies, unpacked.
        hosts, plds, servers: the different ones that have answered; a server is an address.
        pages_by_pld: pages of the PLDs with most of them, with bytes.
        sampled_plds: pages of a fair sample of PLDs.
        host_gaps: from the end of a fetch to the next start at its host.
        server_gaps, space_gaps: from one fetch that was sent to the next, at a server, and in a space that hosts share.
        urls_sent: URLs that nodes sent to inboxes, and `urls_sent_elsewhere`, to partitions of other nodes.
    """

    def __init__(self) -> None:
        self.begin_anew()

    def __repr__(self) -> str:
        return f"<Tallies answers={self.ok_answers + self.other_answers} {self.plds!r}>"

    def begin_anew(self) -> None:
        """Forget everything."""
        self.sizes = [0] * (SIZE_BITS + 1)
        self.ok_bytes = self.html = self.other_answers = self.other_bytes = 0
        self.media_types = Frequent(MEDIA_TYPES_MAX)
        self.encodings = Frequent(ENCODINGS_MAX)
        self.unpacked = self.unpacked_from = self.unpacked_bytes = 0
        self.robots = Frequent(1_000)
        self.hosts, self.plds, self.servers = Distinct(), Distinct(), Distinct()
        self.pages_by_pld = Frequent(PLDS_MAX)
        self.sampled_plds = Sampled(PLDS_MAX)
        self.host_gaps, self.server_gaps, self.space_gaps = Gaps(), Gaps(), Gaps()
        self.urls_sent = self.urls_sent_elsewhere = 0

    @property
    def ok_answers(self) -> int:
        """Answers of status 200."""
        return sum(self.sizes)

    def note_answer(self, status: int, media_type: bytes | None, encoding: bytes | None, body_bytes: int) -> None:
        """A fetch was answered. The names are those of its headers; the body is as transferred. Cost: 0.7 us."""
        if status != 200:
            self.other_answers += 1
            self.other_bytes += body_bytes
            return
        self.sizes[min(body_bytes.bit_length(), SIZE_BITS)] += 1
        self.ok_bytes += body_bytes
        name = media_type_of(media_type)
        self.html += name == "text/html"
        self.media_types.note(name, body_bytes)
        if encoding and (packed := encoding_of(encoding)) != NOT_PACKED:
            self.encodings.note(packed, body_bytes)

    def note_unpacked(self, packed_bytes: int, body_bytes: int) -> None:
        """A packed answer of status 200 was unpacked."""
        self.unpacked += 1
        self.unpacked_from += packed_bytes
        self.unpacked_bytes += body_bytes

    def note_robots(self, status: int | None, body_bytes: int) -> None:
        """A request for robots.txt was answered; None: it was not."""
        self.robots.note(NO_ANSWER if status is None else str(status), body_bytes)

    def note_page(self, host: str, pld: str, address: str, body_bytes: int) -> None:
        """A URL has ended with an answer; an empty address is unknown. Cost: 1 us."""
        self.hosts.add(host)
        self.plds.add(pld)
        if address:
            self.servers.add(address)
        self.pages_by_pld.note(pld, body_bytes)
        self.sampled_plds.note(pld)

    def note_sent(self, urls: int, *, is_elsewhere: bool) -> None:
        """URLs were sent to an inbox, perhaps of a partition that another node owns."""
        self.urls_sent += urls
        if is_elsewhere:
            self.urls_sent_elsewhere += urls

    def add(self, other: Tallies) -> None:
        """Add what others have counted. Cost: 2 ms."""
        self.sizes = [mine + theirs for mine, theirs in zip(self.sizes, other.sizes, strict=True)]
        for name in _NUMBERS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in _FREQUENT:
            theirs: Frequent = getattr(other, name)
            getattr(self, name).add_all(theirs.rows(), theirs.others, theirs.others_amount)
        for name in _DISTINCT:
            getattr(self, name).add_all(getattr(other, name))
        self.sampled_plds.add_all(other.sampled_plds.counts, other.sampled_plds.depth)
        for name in _GAPS:
            gaps: Gaps = getattr(other, name)
            getattr(self, name).add_all(gaps.counts, gaps.tightest)

    def to_bytes(self) -> bytes:
        """Return the tallies as bytes. Cost: 1 ms."""
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
        """Read what `to_bytes` wrote.

        Raises:
            TalliesFormatError: the bytes are damaged, or of another version.
        """
        return _unpacked(data, lambda values: _read(cls(), values))


_NUMBERS: Final = (
    *("ok_bytes", "html", "other_answers", "other_bytes", "unpacked", "unpacked_from", "unpacked_bytes"),
    *("urls_sent", "urls_sent_elsewhere"),
)
_FREQUENT: Final = ("media_types", "encodings", "robots", "pages_by_pld")
_DISTINCT: Final = ("hosts", "plds", "servers")
_GAPS: Final = ("host_gaps", "server_gaps", "space_gaps")


def pages_by_pld_of(data: bytes) -> Frequent:
    """Read nothing but `pages_by_pld` of what `Tallies.to_bytes` wrote; raises as `from_bytes`. Cost: 1 ms."""

    def read(values: dict[str, Any]) -> Frequent:
        frequent = Frequent(PLDS_MAX)
        _read_frequent(frequent, values["pages_by_pld"])
        return frequent

    return _unpacked(data, read)


def _unpacked(data: bytes, read: Callable[[dict[str, Any]], T]) -> T:
    """Return what `read` makes of the values in tallies; it may raise anything if they are damaged."""
    try:
        version, values = msgpack.unpackb(isal_zlib.decompressobj().decompress(data, BYTES_MAX))
        found = read(values) if version == VERSION else None
    except Exception as error:
        raise TalliesFormatError(f"tallies cannot be read: {error!r}") from error
    if found is None:
        raise TalliesFormatError(f"the version of tallies is {version}; this one reads {VERSION}")
    return found


def _written_frequent(frequent: Frequent) -> list[Any]:
    return [frequent.others, frequent.others_amount, [list(row) for row in frequent.rows()]]


def _written_gaps(gaps: Gaps) -> list[Any]:
    return [gaps.counts, [list(gap) for gap in gaps.tightest]]


def _read_frequent(mine: Frequent, value: Any) -> None:
    mine.add_all((FrequentName(*row) for row in value[2]), *value[:2])


def _read(tallies: Tallies, values: dict[str, Any]) -> Tallies:
    readers: dict[str, Callable[[Any, Any], None]] = {
        **dict.fromkeys(_FREQUENT, _read_frequent),
        **dict.fromkeys(_DISTINCT, lambda mine, value: mine.add_all(Distinct(value))),
        **dict.fromkeys(_GAPS, lambda mine, value: mine.add_all(value[0], (NamedGap(*gap) for gap in value[1]))),
        "sampled_plds": lambda mine, value: mine.add_all(value[1], min(int(value[0]), DEPTH_MAX)),
    }
    for name in _NUMBERS:
        setattr(tallies, name, int(values[name]))
    tallies.sizes = [int(count) for _, count in zip(tallies.sizes, values["sizes"], strict=True)]
    for name, read in readers.items():
        read(getattr(tallies, name), values[name])
    return tallies


@lru_cache(1_024)
def media_type_of(header: bytes | None) -> str:
    """Return the media type that a Content-Type header claims, without parameters; of at most 121 characters."""
    if not header or not header.strip():
        return NO_TYPE
    name = type_told((header,))
    return name if _MEDIA_TYPE.fullmatch(name) else MALFORMED


@lru_cache(256)
def encoding_of(header: bytes) -> str:
    """Return what a Content-Encoding header says, of at most 90 characters."""
    name = header[:1_000].strip().lower()
    return name.decode("ascii") if _ENCODING.fullmatch(name) else MALFORMED
