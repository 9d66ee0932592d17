"""The column `aux` of a batch: an opaque byte string for each tuple."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

import numpy as np

from bigcrawl.exceptions import ContractError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    LengthArray = npt.NDArray[np.uint32]

COLUMN_BYTES_MAX: Final = 2**31


class Aux:
    __slots__ = ("_ends", "blob", "lengths")

    def __init__(self, blob: bytes, lengths: LengthArray) -> None:
        self.blob = blob
        self.lengths = lengths
        self._ends: list[int] | None = None

    @classmethod
    def of(cls, items: Sequence[str] | Sequence[bytes]) -> Self:
        if not items:
            return cls.empty(0)
        if isinstance(items[0], str):
            text = "".join(items)  # type: ignore[arg-type]
            if text.isascii():
                return cls(text.encode("ascii"), _lengths(items))
            items = [str(item).encode() for item in items]
        return cls(b"".join(items), _lengths(items))  # type: ignore[arg-type]

    @classmethod
    def empty(cls, count: int) -> Self:
        return cls(b"", np.zeros(count, dtype=np.uint32))

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, place: int) -> bytes:
        ends = self._ends_list()
        return self.blob[ends[place] - int(self.lengths[place]) : ends[place]]

    def __iter__(self) -> Iterator[bytes]:
        start = 0
        for end in self._ends_list():
            yield self.blob[start:end]
            start = end

    def select(self, mask: npt.NDArray[np.bool_]) -> list[bytes]:
        places = np.flatnonzero(mask)
        ends = np.cumsum(self.lengths, dtype=np.int64)[places]
        starts = ends - self.lengths[places]
        blob = self.blob
        return [blob[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]

    def from_place(self, place: int) -> Self:
        return type(self)(self.blob[int(self.lengths[:place].sum(dtype=np.int64)) :], self.lengths[place:])

    def _ends_list(self) -> list[int]:
        if self._ends is None:
            ends: list[int] = np.cumsum(self.lengths, dtype=np.int64).tolist()
            self._ends = ends
        return self._ends


def _lengths(items: Sequence[str] | Sequence[bytes]) -> LengthArray:
    return np.fromiter(map(len, items), dtype=np.uint32, count=len(items))


def encode_aux(columns: Sequence[Aux]) -> bytes:
    """Return the bytes of columns: a width (u8, 2 or 4), lengths of this width, the strings; b"" if all are empty."""
    if not any(column.blob for column in columns):
        return b""
    lengths = np.concatenate([column.lengths for column in columns])
    width = np.dtype("<u2" if int(lengths.max()) < 1 << 16 else "<u4")
    raw = b"".join((bytes([width.itemsize]), lengths.astype(width).tobytes(), *(column.blob for column in columns)))
    if len(raw) > COLUMN_BYTES_MAX:
        raise ContractError(f"aux of {len(raw)} bytes at once; at most {COLUMN_BYTES_MAX}: offer smaller batches")
    return raw


def decode_aux(raw: bytes, count: int) -> Aux | None:
    """Return the column of `count` strings, or None if it is malformed."""
    if not raw:
        return Aux.empty(count)
    width = raw[0]
    if width not in {2, 4} or len(raw) < 1 + count * width:
        return None
    lengths = np.frombuffer(raw, dtype=f"<u{width}", count=count, offset=1).astype(np.uint32)
    return Aux(raw[1 + count * width :], lengths)
