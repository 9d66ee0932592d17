"""The synthetic links of a simulated crawl."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import mmh3
import numpy as np

from bigcrawl.scheduler.budgets.allowances import Allowances
from bigcrawl.scheduler.records.queued_url import QueuedUrl

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bigcrawl.drum.format import KeyArray
    from bigcrawl.scheduler.budgets.allowances import Limiting
    from bigcrawl.scheduler.budgets.in_degrees import InDegreeArray


class Flat:
    """One budget for all."""

    def __init__(self, budget: int) -> None:
        self._budget = budget

    def allow(
        self, urls: Sequence[QueuedUrl], plds: KeyArray, in_degrees: InDegreeArray, limiting: Sequence[Limiting]
    ) -> Allowances:
        return Allowances(plds, np.full(len(urls), self._budget, dtype=np.uint32), urls)


class Web:
    """URLs nobody has seen, spread evenly over PLDs, of which each is one host."""

    def __init__(self, plds: int, links: float, seed: int = 4) -> None:
        self._plds = plds
        self._links = links
        self._random = random.Random(seed)
        self._owed = 0.0
        self.made = 0

    def links_of(self, pages: int) -> list[QueuedUrl]:
        """Return what so many pages link to: L new URLs each, on the average exactly."""
        self._owed += pages * self._links
        count, self._owed = int(self._owed), self._owed % 1
        return [self._new_url() for _ in range(count)]

    def _new_url(self) -> QueuedUrl:
        self.made += 1
        pld = f"site{self._random.randrange(self._plds)}.example"
        path = f"http://{pld}/{self._random.getrandbits(40):010x}/{self.made}.html"
        return QueuedUrl(mmh3.hash64(path, signed=False)[0], pld, 0, 0, path.encode())
