"""Parses replies whose shape depends on the protocol version, and sorts the replies to several calls."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from bigcrawl.exceptions import BigcrawlError, OwnershipLostError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

T = TypeVar("T")


def pairs_of(reply: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
    """Return the names and values in the reply for a hash."""
    return list(zip(reply[::2], reply[1::2], strict=True))


def scores_of(row: Any) -> list[tuple[str, float]]:
    """Return the members and scores in the reply for a sorted set, in either protocol version."""
    pairs = row if row and isinstance(row[0], list | tuple) else pairs_of(row)
    return [(member.decode(), float(score)) for member, score in pairs]


@dataclass(slots=True)
class SortedReplies(Generic[T]):
    """Objects that made one call each, by the outcome of the call.

    Attributes:
        done: objects whose call was carried out, with its result.
        lost: objects whose partition has another owner.
        failed: the first other error.
    """

    done: list[tuple[T, Any]] = field(default_factory=list)
    lost: list[T] = field(default_factory=list)
    failed: BigcrawlError | None = None

    def raise_failure(self) -> None:
        """Raise the first error that is not a loss of ownership, if there is one."""
        if self.failed is not None:
            raise self.failed


def sort_replies(askers: Iterable[T], replies: Iterable[Any]) -> SortedReplies[T]:
    """Sort the results of `RedisClient.run_each`, one for each asker, in their order."""
    found: SortedReplies[T] = SortedReplies()
    for asker, reply in zip(askers, replies, strict=True):
        if isinstance(reply, OwnershipLostError):
            found.lost.append(asker)
        elif isinstance(reply, BigcrawlError):
            found.failed = found.failed or reply
        else:
            found.done.append((asker, reply))
    return found
