"""Replies of Redis that have another shape by protocol version, or that nobody wants as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


def pairs_of(reply: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
    """The names and values of a hash, as a reply has them."""
    return list(zip(reply[::2], reply[1::2], strict=True))


def scores_of(row: Any) -> list[tuple[str, float]]:
    """The members and scores of a sorted set, whichever protocol version brought them."""
    pairs = row if row and isinstance(row[0], list | tuple) else pairs_of(row)
    return [(member.decode(), float(score)) for member, score in pairs]
