from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from bigcrawl.exceptions import BigcrawlError, OwnershipLostError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

T = TypeVar("T")


def pairs_of(reply: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
    return list(zip(reply[::2], reply[1::2], strict=True))


def scores_of(row: Any) -> list[tuple[str, float]]:
    pairs = row if row and isinstance(row[0], list | tuple) else pairs_of(row)
    return [(member.decode(), float(score)) for member, score in pairs]


@dataclass(slots=True)
class SortedReplies(Generic[T]):
    """Objects sorted by the outcome of their calls: done, or lost to another owner; and the first other error."""

    done: list[tuple[T, Any]] = field(default_factory=list)
    lost: list[T] = field(default_factory=list)
    failed: BigcrawlError | None = None

    def raise_failure(self) -> None:
        if self.failed is not None:
            raise self.failed


def sort_replies(askers: Iterable[T], replies: Iterable[Any]) -> SortedReplies[T]:
    found: SortedReplies[T] = SortedReplies()
    for asker, reply in zip(askers, replies, strict=True):
        if isinstance(reply, OwnershipLostError):
            found.lost.append(asker)
        elif isinstance(reply, BigcrawlError):
            found.failed = found.failed or reply
        else:
            found.done.append((asker, reply))
    return found
