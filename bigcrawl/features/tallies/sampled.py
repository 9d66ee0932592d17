"""A uniform sample of names, by hash, each with its exact count. Source: Gibbons, *Distinct sampling* (2001)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bigcrawl.features.tallies.distinct import hash_of

if TYPE_CHECKING:
    from collections.abc import Mapping

LEFT_OUT_MAX: Final = 8_192
DEPTH_MAX: Final = 64


class SampledCounts:
    """Counts one in `2 ** depth` names, at most `names_max`."""

    def __init__(self, names_max: int) -> None:
        self._names_max = names_max
        self._counts: dict[str, int] = {}
        self._left_out: set[str] = set()  # recently, so that their hashes need not be computed again
        self.depth = 0

    @property
    def counts(self) -> Mapping[str, int]:
        return self._counts

    def count_name(self, name: str) -> None:
        count = self._counts.get(name)
        if count is not None:
            self._counts[name] = count + 1
        elif name not in self._left_out:
            self._count_if_sampled(name, 1)

    def add_all(self, counts: Mapping[str, int], depth: int) -> None:
        self._drop_unsampled(max(depth, self.depth))
        for name, count in counts.items():
            self._count_if_sampled(name, count)

    def _count_if_sampled(self, name: str, count: int) -> None:
        if not self._is_sampled(name):
            if len(self._left_out) >= LEFT_OUT_MAX:
                self._left_out.clear()
            self._left_out.add(name)
            return
        self._counts[name] = self._counts.get(name, 0) + count
        while len(self._counts) > self._names_max and self.depth < DEPTH_MAX:
            self._drop_unsampled(self.depth + 1)

    def _is_sampled(self, name: str) -> bool:
        return not hash_of(name) & ((1 << self.depth) - 1)

    def _drop_unsampled(self, depth: int) -> None:
        self.depth = depth
        self._counts = {name: count for name, count in self._counts.items() if self._is_sampled(name)}
