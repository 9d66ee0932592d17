"""How optional features take part in a partition: with tables, and a part of each step.

The tables of registered features exist whether a crawl uses them or not.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bigcrawl.feature_list import modules_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import numpy.typing as npt

    from bigcrawl.config import Config
    from bigcrawl.drum.bucket import Kind
    from bigcrawl.drum.format import KeyArray
    from bigcrawl.scheduler.budgets.allowances import BoundUrl, DivisorArray
    from bigcrawl.scheduler.partition.fold.imported_rows import TableRows
    from bigcrawl.scheduler.partition.tables import Tables
    from bigcrawl.scheduler.queues.timed import TimedUrls
    from bigcrawl.scheduler.records.queued_url import QueuedUrl, TimedUrl

    Bools = npt.NDArray[np.bool_]
    Records = npt.NDArray[Any]


class StepPart:
    """One feature's part of one step.

    Attributes:
        owed: packed rows of the kind `records.observed.OWED` for other partitions, repeated until they have arrived.
        hints: rows for other partitions, by kind; they may be lost.
        messages: logged once the step is committed.
    """

    marks: ClassVar[tuple[int, ...]] = ()

    def __init__(self, tables: Tables, pld_of: Callable[[str], str]) -> None:
        self.tables = tables
        self.pld_of = pld_of
        self.counted: Counter[str] = Counter()
        self.owed = b""
        self.hints: list[tuple[int, Sequence[tuple[int, ...]]]] = []
        self.messages: list[str] = []

    def forget(self, keys: KeyArray) -> None: ...

    def put_timed(self, arrived: Sequence[TimedUrl], timed: TimedUrls, now_s: int) -> None:
        """Queue URLs that come again later, each once."""

    def come_up(self, urls: Sequence[QueuedUrl], timed: TimedUrls, now_s: int) -> Sequence[QueuedUrl]:
        """Return the due URLs to place now; the others wait again."""
        return urls

    def fold_marks(self, code: int, keys: KeyArray, values: Records) -> None:
        """Fold marks of one code, in order of arrival; `values` are of `records.outcomes.VALUE`."""

    def fold_rows(self, rows: Mapping[int, Records]) -> None: ...

    def imported(self, rows: TableRows) -> TableRows | None:
        return rows

    def record_new(self, urls: Sequence[QueuedUrl], plds: KeyArray) -> None: ...

    def limit(self, bound: Sequence[BoundUrl]) -> None: ...

    def announce(self, urls: Sequence[QueuedUrl], plds: KeyArray) -> None:
        """Log messages about the PLDs of URLs that are placed now: their names are known only here."""

    def known_of(self, urls: Sequence[QueuedUrl]) -> Mapping[str, Records]:
        """Return facts about URLs for a prioritizer, see `queues.prioritizers.FoundUrls`."""
        return {}

    def admitted(self, urls: list[QueuedUrl]) -> list[QueuedUrl]:
        return urls


class Feature:
    """One feature, as the settings configure it. A module `fold` calls its class FEATURE.

    Attributes:
        explains_by: tables that `look_up` and `look_up_plds` read.
        wants_modified: whether `record_modified` is called.
        changes_scores: whether scores of waiting URLs change as others are fetched.
        hosts_at_once: how many hosts may be hot when a URL that is not urgent begins another one; 0 for any number.
    """

    name: ClassVar[str]
    tables: ClassVar[Mapping[str, Kind]] = {}
    larger_counts: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    counts: ClassVar[tuple[str, ...]] = ()
    explains_by: ClassVar[tuple[str, ...]] = ()
    wants_modified: bool = False
    changes_scores: ClassVar[bool] = False
    hosts_at_once: int = 0

    @classmethod
    def of_config(cls, config: Config) -> Feature | None:
        raise NotImplementedError

    def begin(self, tables: Tables, pld_of: Callable[[str], str]) -> StepPart:
        raise NotImplementedError

    def divisors(self, tables: Tables, plds: KeyArray) -> DivisorArray | None:
        return None

    def record_modified(self, pages: Iterable[tuple[int, int]], now_s: int) -> None:
        """Record when pages, by URL key, changed according to their sites. Steps run meanwhile in another thread."""

    @classmethod
    def ended_since(cls, tables: Tables, urls: Sequence[QueuedUrl], ended: Bools) -> Bools:
        """Return which URLs have ended since they were admitted, given which have ever ended."""
        return ended

    @classmethod
    def look_up(cls, tables: Tables, key: int, pld: int) -> Any:
        return None

    @classmethod
    def look_up_plds(cls, tables: Tables, plds: KeyArray) -> tuple[Any, ...]:
        return ()


def all_features() -> tuple[type[Feature], ...]:
    return tuple(module.FEATURE for module in modules_of("fold"))


def features_of(config: Config) -> tuple[Feature, ...]:
    return tuple(feature for one in all_features() if (feature := one.of_config(config)) is not None)


def divisors_of(features: Iterable[Feature], tables: Tables, plds: KeyArray) -> DivisorArray | None:
    """Return the largest divisor of each PLD's budget; None if no budget is lowered."""
    found = [d for feature in features if (d := feature.divisors(tables, plds)) is not None]
    if not found:
        return None
    largest: DivisorArray = found[0] if len(found) == 1 else np.maximum.reduce(found)
    return largest
