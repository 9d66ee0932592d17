"""A bounded sketch of the walks of one node; those of all nodes together give the size of the web so far.

Of the URLs that walks saw, it keeps those with the lowest hashes. For them it knows what `estimating` knows of all: by
which walks they were seen, their mass, and whether they were chosen and pages. So the same formulas hold, times the
inverse of the share of URLs that is kept. It has no interval but the bounds themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bigcrawl_sampling.estimating import WALKS_MIN

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bigcrawl_sampling.steps import WalkStep

KEPT_MAX: Final = 512
WALKS_KEPT: Final = 3  # formulas ask for URLs that one walk saw, or two
_ALL: Final = 1 << 64


@dataclass(slots=True)
class _SeenUrl:
    walks: set[int] = field(default_factory=set)
    mass: float = 0.0
    chosen: int = 0
    pages: int = 0

    def add(self, walks: Iterable[int], mass: float, chosen: int, pages: int) -> None:
        self.walks = set(sorted(self.walks.union(walks))[:WALKS_KEPT])
        self.mass += mass
        self.chosen += chosen
        self.pages += pages


class WalkSketch:
    def __init__(self) -> None:
        self._below = _ALL
        self._seen: dict[int, _SeenUrl] = {}
        self.walks = 0
        self.fetches = 0

    def add(self, step: WalkStep) -> None:
        self.walks += not step.step
        self.fetches += 1
        for link in self._kept_of(step.links):
            self._of(link).add((step.walk,), 1 / len(step.links), 0, 0)
        asked = int(_mix_keys([step.asked])[0])
        for key in self._kept_of((step.asked, step.found)):
            is_chosen = key == asked and step.step > 0
            self._of(key).add((step.walk,), 0.0, is_chosen, is_chosen and step.is_page)
        self._trim()

    def figures(self) -> dict[str, int]:
        return {"steps of random walks": self.fetches}

    def to_json(self) -> dict[str, Any]:
        rows = [[key, url.mass, url.chosen, url.pages, *sorted(url.walks)] for key, url in self._seen.items()]
        return {"walks": self.walks, "fetches": self.fetches, "below": self._below, "urls": rows}

    def merge(self, data: dict[str, Any]) -> None:
        """Add another node's sketch; raise ValueError, TypeError or LookupError if it is malformed."""
        self.walks += int(data["walks"])
        self.fetches += int(data["fetches"])
        self._below = min(self._below, int(data["below"]))
        for key, mass, chosen, pages, *walks in data["urls"]:
            self._of(int(key)).add(map(int, walks), float(mass), int(chosen), int(pages))
        self._trim()

    def estimate(self) -> dict[str, Any]:
        """Return walks, fetches, and lower and upper bounds of URLs and pages, None for too few walks."""
        found: dict[str, Any] = {"walks": self.walks, "fetches": self.fetches, "urls": None, "pages": None}
        drawn = [url for url in self._seen.values() if url.chosen and url.mass]
        if self.walks < WALKS_MIN or not drawn:
            return found
        each = _ALL / self._below
        times = np.bincount([len(url.walks) for url in self._seen.values()], minlength=3)
        seen, once, twice = (each * float(number) for number in (len(self._seen), times[1], times[2]))
        least = seen + (self.walks - 1) / self.walks * once * max(once - 1, 0) / (2 * (twice + 1))
        bounds = sorted((least, max(seen, seen + 2 * once - twice)))
        share = sum(url.pages / url.mass for url in drawn) / sum(url.chosen / url.mass for url in drawn)
        return {
            **found,
            "urls": [round(bound) for bound in bounds],
            "pages": [round(share * bound) for bound in bounds],
        }

    def _of(self, key: int) -> _SeenUrl:
        found = self._seen.get(key)
        if found is None:
            found = self._seen[key] = _SeenUrl()
        return found

    def _kept_of(self, keys: Iterable[int]) -> list[int]:
        mixed = _mix_keys(dict.fromkeys(keys))
        return [int(key) for key in mixed[mixed < np.uint64(self._below)]] if self._below < _ALL else mixed.tolist()

    def _trim(self) -> None:
        if len(self._seen) > KEPT_MAX or any(key >= self._below for key in self._seen):
            keys = sorted(key for key in self._seen if key < self._below)
            self._below = keys[KEPT_MAX] if len(keys) > KEPT_MAX else self._below
            self._seen = {key: self._seen[key] for key in keys[:KEPT_MAX]}


def _mix_keys(keys: Iterable[int]) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Return hashes of keys, because keys of one PLD start alike."""
    mixed = np.array(list(keys), dtype=np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed
