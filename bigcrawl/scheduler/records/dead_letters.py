"""Dead letters: URLs that were given up because they kill or hang the node that fetches them."""

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
    pass


class DeadLetter(NamedTuple):
    key: int
    host: str
    priority: int
    flags: int
    body: bytes
    deaths: int
    died_ms: int

    @classmethod
    def of(cls, held: HeldUrl, deaths: int, now_ms: int) -> Self:
        fields = held.fields
        return cls(fields.key, held.host, fields.priority, fields.flags, fields.body, deaths, now_ms)

    @property
    def url(self) -> str:
        return look_at_body(self.body).url

    @property
    def queued(self) -> QueuedUrl:
        return QueuedUrl(self.key, self.host, self.priority, self.flags | UNCHECKED, self.body)


def pack_letter(letter: DeadLetter) -> bytes:
    packed: bytes = msgpack.packb([_VERSION, *letter[1:]])
    return packed


def unpack_letter(key: int, data: bytes) -> DeadLetter:
    try:
        version, *fields = msgpack.unpackb(data, raw=False)
        if version != _VERSION:
            raise LetterFormatError(f"dead letter has version {version}; must be {_VERSION}")
        return DeadLetter(key, *fields)
    except (ValueError, TypeError) as error:
        raise LetterFormatError(f"not a dead letter: {error}") from error
