"""What surrounds a DRUM in a test: a model of what it holds, and a receiver that checks what it is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bigcrawl.drum.bucket import CHECK, CHECK_UPDATE, UPDATE, Kind
from bigcrawl_drum.drum import Drum

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bigcrawl.drum.files import Files
    from bigcrawl_drum.merge import Answer

# Arrays of 20 tuples, and merges of 18 tuples a bucket at most.
MEMORY_BYTES = 3500
BUCKETS = 4

KINDS = {
    "set": Kind("run", fresh_max=5),
    "map": Kind("run", np.dtype("<u4"), fresh_max=5),
    "counts": Kind("run", np.dtype("<u1"), increment=True, fresh_max=5),
    "records": Kind("run", np.dtype([("time", "<u4"), ("status", "<u2")]), fresh_max=5),
}


class Offer(NamedTuple):
    """One tuple; `value` counts where the kind has values."""

    key: int
    op: int
    value: int
    aux: bytes


class ReceiverError(Exception):
    """The receiver did not take an answer."""


def spread(number: int) -> int:
    """A key for a small number; few numbers meet in each bucket, and every bucket has some."""
    return (number * 0x9E3779B97F4A7C15) % 2**64


class DrumWorld:
    """Offers tuples, knows what each must be told, and holds a DRUM to it over crashes."""

    def __init__(self, directory: Path, kind: Kind) -> None:
        self.directory = directory
        self.kind = kind
        self.offers: list[Offer] = []
        self.flushed = 0
        self.told = 0
        self.refuses = 0
        self.drum: Drum | None = None

    def open(self, files: Files | None = None) -> Drum:
        """Open the DRUM, forget what it has lost, and see that it lost nothing it may not lose."""
        self.drum = Drum(
            self.directory, self.receive, kind=self.kind, buckets=BUCKETS, memory_bytes=MEMORY_BYTES, files=files
        )
        state = self.drum._state
        end = state.offered.end
        assert self.flushed <= end <= len(self.offers), "what was flushed is there, and nothing else"
        assert self.told <= end, "what was told was durable"
        assert self._want_nothing(self.told, state.told), "what is not told again was told"
        del self.offers[end:]
        self.flushed = end
        return self.drum

    def offer(self, batch: Sequence[Offer]) -> None:
        """Offer a batch; the model takes it when the DRUM did."""
        assert self.drum is not None
        operations = {offer.op for offer in batch}
        ops = np.array([offer.op for offer in batch], dtype=np.uint8)
        values = None if self.kind.value is None else self.values_of([offer.value for offer in batch])
        keys = np.array([offer.key for offer in batch], dtype=np.uint64)
        op = operations.pop() if len(operations) == 1 else ops
        before = len(self.offers)
        # A batch may be spilled and flushed by a merge that comes later, not by its own offer.
        self.drum.offer(keys, op, values, [offer.aux for offer in batch])
        self.offers += batch
        self.flushed = max(self.flushed, self.drum._state.offered.end)
        assert self.flushed <= before + len(batch)

    def flush(self) -> None:
        assert self.drum is not None
        self.drum.flush()
        self.flushed = len(self.offers)

    def merge(self) -> None:
        assert self.drum is not None
        self.drum.merge()
        self.flushed = len(self.offers)
        assert self.drum.waiting == 0
        assert self._want_nothing(self.told, len(self.offers)), "all is told"

    def receive(self, answer: Answer) -> None:
        """Check an answer against the model's; those told before are the same."""
        if self.refuses:
            self.refuses -= 1
            raise ReceiverError
        count = len(answer.keys)
        assert self._want_nothing(self.told, answer.first), "answers come in order, without gaps"
        part = self.offers[answer.first : answer.first + count]
        found, values = self._expected(answer.first, count)
        assert answer.keys.tolist() == [offer.key for offer in part]
        assert answer.ops.tolist() == [offer.op for offer in part]
        assert list(answer.aux) == [offer.aux for offer in part]
        asked = np.array([offer.op != UPDATE for offer in part], dtype=bool)
        assert answer.found[asked].tolist() == np.array(found, dtype=bool)[asked].tolist()
        if self.kind.value is not None:
            assert answer.values is not None
            assert answer.values[asked].tolist() == self.values_of(values)[asked].tolist()
        self.told = max(self.told, answer.first + count)

    def held(self) -> dict[int, int]:
        """What the model holds after all offers: a value for each key."""
        held: dict[int, int] = {}
        for offer in self.offers:
            self._apply(held, offer)
        return held

    def values_of(self, numbers: Sequence[int]) -> np.ndarray:
        """Values of the kind's dtype; a record has its number in both fields."""
        dtype = self.kind.value
        assert dtype is not None
        if dtype.names:
            return np.array([(number, number) for number in numbers], dtype=dtype)
        return np.array(numbers, dtype=dtype)

    def _want_nothing(self, start: int, end: int) -> bool:
        """Whether no tuple from `start` to before `end` has an answer to come; spills of updates are not told."""
        return all(offer.op == UPDATE for offer in self.offers[start:end])

    def _expected(self, first: int, count: int) -> tuple[list[bool], list[int]]:
        held: dict[int, int] = {}
        found, values = [], []
        for number, offer in enumerate(self.offers[: first + count]):
            if number >= first:
                found.append(offer.key in held)
                values.append(held.get(offer.key, 0))
            self._apply(held, offer)
        return found, values

    def _apply(self, held: dict[int, int], offer: Offer) -> None:
        if offer.op == CHECK:
            return
        assert offer.op in {UPDATE, CHECK_UPDATE}
        added = held.get(offer.key, 0) + offer.value
        held[offer.key] = min(added, 255) if self.kind.increment else offer.value
