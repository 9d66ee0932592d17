"""Dead letters as Redis stores them: URLs that were given up because they kill or hang the node that fetches them.

The partition's hash `dead` maps the URL's key to msgpack [version, host, priority, flags, body, deaths, ms since 1970].
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self

import msgpack

from bigcrawl.exceptions import BigcrawlError
from bigcrawl.scheduler.records.body import look_at_body
from bigcrawl.scheduler.records.queued_url import UNCHECKED, QueuedUrl

if TYPE_CHECKING:
    from bigcrawl.scheduler.records.held import HeldUrl

_VERSION = 1


class LetterFormatError(BigcrawlError):
    """The bytes are not a dead letter, or have a later version."""


class DeadLetter(NamedTuple):
    """One dead letter.

    Attributes:
        key: the URL's key.
        host: the URL's host.
        priority: the priority that the URL was queued with.
        flags: the flags that it was queued with.
        body: the request, see `bigcrawl.scheduler.adapter.request_codec`.
        deaths: how many nodes died while it was in process.
        died_ms: when it was given up, ms since 1970 on the crawl's clock.
    """

    key: int
    host: str
    priority: int
    flags: int
    body: bytes
    deaths: int
    died_ms: int

    @classmethod
    def of(cls, held: HeldUrl, deaths: int, now_ms: int) -> Self:
        """Return the dead letter of a held URL."""
        fields = held.fields
        return cls(fields.key, held.host, fields.priority, fields.flags, fields.body, deaths, now_ms)

    @property
    def url(self) -> str:
        """The URL as it is fetched."""
        return look_at_body(self.body).url

    @property
    def queued(self) -> QueuedUrl:
        """The URL to queue again; its flags skip the seen check."""
        return QueuedUrl(self.key, self.host, self.priority, self.flags | UNCHECKED, self.body)


def pack_letter(letter: DeadLetter) -> bytes:
    """Return a dead letter as Redis stores it under its key."""
    packed: bytes = msgpack.packb([_VERSION, *letter[1:]])
    return packed


def unpack_letter(key: int, data: bytes) -> DeadLetter:
    """Return the dead letter of a key.

    Raises:
        LetterFormatError: the bytes are damaged or have a later version.
    """
    try:
        version, *fields = msgpack.unpackb(data, raw=False)
        if version != _VERSION:
            raise LetterFormatError(f"dead letter has version {version}; must be {_VERSION}")
        return DeadLetter(key, *fields)
    except (ValueError, TypeError) as error:
        raise LetterFormatError(f"not a dead letter: {error}") from error
