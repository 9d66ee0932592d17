"""Rows of every kind, as tests make and read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from bigcrawl.features.copies.rows import FOUND
from bigcrawl.scheduler.records.observed import pack_observed, unpack_observed

if TYPE_CHECKING:
    from typing import Any

    import numpy.typing as npt


class Unpacked(NamedTuple):
    """The rows of an entry, by their names."""

    seen: npt.NDArray[Any]
    sketched: npt.NDArray[Any]
    found: npt.NDArray[Any]
    sampled: npt.NDArray[Any]
    counted: npt.NDArray[Any]
    shared: npt.NDArray[Any]
    voted: npt.NDArray[Any]


def pack_each(*rows: bytes | bytearray, found: bytes = b"") -> bytes:
    """Pack rows of each kind, in the order of their numbers, and rows `found`."""
    by_kind: dict[int, bytes | bytearray] = dict(enumerate(rows))
    return pack_observed(by_kind | {FOUND: found} if found else by_kind)


def unpack_each(data: bytes) -> Unpacked:
    """Unpack rows of all kinds."""
    return Unpacked(*(rows for _, rows in sorted(unpack_observed(data).items())))
