"""Dead letters: URLs that ended because they kill or hang whoever fetches them, as Redis keeps them.

Msgpack [version, host, priority, flags, body, deaths, ms since 1970], by the URL's key in its partition's hash `dead`.
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
    """The bytes are no dead letter, or one of a later version."""


class DeadLetter(NamedTuple):
    """One of them.

    Attributes:
        key: of the URL.
        host: of the URL.
        priority: as it was queued with.
        flags: the same.
        body: of the request, see `bigcrawl.scheduler.adapter.request_codec`.
        deaths: at which it was in process.
        died_ms: when it was given up, time of the crawls.
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
        """Return the letter of a URL that is held."""
        fields = held.fields
        return cls(fields.key, held.host, fields.priority, fields.flags, fields.body, deaths, now_ms)

    @property
    def url(self) -> str:
        """As it is fetched."""
        return look_at_body(self.body).url

    @property
    def queued(self) -> QueuedUrl:
        """The URL as it is queued once more, though it was seen."""
        return QueuedUrl(self.key, self.host, self.priority, self.flags | UNCHECKED, self.body)


def pack_letter(letter: DeadLetter) -> bytes:
    """Return a letter as Redis keeps it below its key."""
    packed: bytes = msgpack.packb([_VERSION, *letter[1:]])
    return packed


def unpack_letter(key: int, data: bytes) -> DeadLetter:
    """Return the letter of a key.

    Raises:
        LetterFormatError: see there.
    """
    try:
        version, *fields = msgpack.unpackb(data, raw=False)
        if version != _VERSION:
            raise LetterFormatError(f"a dead letter of version {version}; must be {_VERSION}")
        return DeadLetter(key, *fields)
    except (ValueError, TypeError) as error:
        raise LetterFormatError(f"no dead letter: {error}") from error
