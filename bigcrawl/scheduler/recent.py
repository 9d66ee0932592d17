"""Keys met lately, so that what was just sent is not sent again. Source: Mercator's cache of popular URLs."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Collection

K = TypeVar("K", bound=int)


class RecentKeys:
    """A set of keys of bounded size: two generations, of which the older is forgotten at once."""

    def __init__(self, keys_max: int) -> None:
        self._half = keys_max // 2
        self._young: set[int] = set()
        self._old: set[int] = set()

    def __repr__(self) -> str:
        return f"<RecentKeys {len(self._young) + len(self._old)}>"

    def new(self, keys: Collection[K]) -> list[K]:
        """The keys, different ones, that were not met lately; they are from now on."""
        young, old = self._young, self._old
        fresh = [key for key in keys if key not in young and key not in old]
        young.update(fresh)
        if len(young) >= self._half:
            self._old, self._young = young, set()
        return fresh
