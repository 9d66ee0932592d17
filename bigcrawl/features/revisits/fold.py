"""Revisits in a partition: pages wait for their next visits, each sent once by its number in the table `visits`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from bigcrawl.bounded import BoundedDict
from bigcrawl.drum.bucket import Kind
from bigcrawl.drum.format import KEY_TYPE
from bigcrawl.features.revisits.settings import RevisitConfig
from bigcrawl.revisiting.rules import CYCLES, NEVER, TRUST
from bigcrawl.scheduler.partition.fold.feature import Feature, StepPart
from bigcrawl.scheduler.records.body import known_in
from bigcrawl.scheduler.records.queued_url import NO_MORE_S, QueuedUrl, TimedUrl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import numpy.typing as npt

    from bigcrawl.config import Config
    from bigcrawl.drum.format import KeyArray
    from bigcrawl.features.revisits.looks import Modified
    from bigcrawl.scheduler.partition.fold.imported_rows import TableRows
    from bigcrawl.scheduler.partition.tables import Tables
    from bigcrawl.scheduler.queues.timed import TimedUrls

    Bools = npt.NDArray[np.bool_]

_TABLE = "visits"
_VISITS = np.dtype([("number", "<u4")])


class Revisits(Feature):
    """Keeps pages that are visited again. Rows from other nodes are folded whatever this node's settings are."""

    name = "revisits"
    tables: ClassVar = {_TABLE: Kind("visit", _VISITS, fresh_max=1024)}
    explains_by = (_TABLE,)

    def __init__(self, config: RevisitConfig) -> None:
        self.wants_modified = config.rule != NEVER
        self.listed = ListedPages(config)
        self.is_exact = config.rule == CYCLES

    @classmethod
    def of_config(cls, config: Config) -> Revisits:
        return cls(config.feature_config(RevisitConfig))

    def begin(self, tables: Tables, pld_of: Callable[[str], str]) -> StepPart:
        return _RevisitStep(tables, pld_of, self.listed, is_exact=self.is_exact)

    def record_modified(self, pages: Iterable[tuple[int, int]], now_s: int) -> None:
        self.listed.record_pages(pages, now_s)

    @classmethod
    def ended_since(cls, tables: Tables, urls: Sequence[QueuedUrl], ended: Bools) -> Bools:
        """Return which URLs have ended since their admission; a revisited one has if a later visit is recorded."""
        pairs = zip(urls, ended.tolist(), strict=True)
        before = np.array([_visits_before(url) if has_ended else 0 for url, has_ended in pairs], dtype=np.int64)
        if not before.any():
            return ended
        _, known = tables[_TABLE].values(np.array([url.key for url in urls], dtype=KEY_TYPE))
        since: Bools = ended & ((before == 0) | (before < known["number"]))
        return since

    @classmethod
    def look_up(cls, tables: Tables, key: int, pld: int) -> int | None:
        record = tables.record(_TABLE, key)
        return None if record is None else int(record["number"])


class _RevisitStep(StepPart):
    def __init__(
        self, tables: Tables, pld_of: Callable[[str], str], modified: Modified, *, is_exact: bool = False
    ) -> None:
        super().__init__(tables, pld_of)
        self._is_exact = is_exact
        self._modified = modified

    def forget(self, keys: KeyArray) -> None:
        table = self.tables[_TABLE]
        self.tables.commit(table, table.remove_keys(keys))

    def put_timed(self, arrived: Sequence[TimedUrl], timed: TimedUrls, now_s: int) -> None:
        from bigcrawl.features.revisits.looks import first_check_s

        last: dict[int, TimedUrl] = {}
        for revisit in arrived:
            known = last.get(revisit.url.key)
            if known is None or revisit.number > known.number:
                last[revisit.url.key] = revisit
        keys = np.array(sorted(last), dtype=KEY_TYPE)
        later = self._record_visits(keys, np.array([last[key].number for key in keys.tolist()], dtype=np.uint32))
        for key, revisit in last.items():
            if key in later and revisit.due_s == NO_MORE_S:
                timed.keep_for_good(revisit.url)
            elif key in later:
                timed.put(revisit.url, first_check_s(revisit, self._modified), now_s, is_exact=self._is_exact)

    def come_up(self, urls: Sequence[QueuedUrl], timed: TimedUrls, now_s: int) -> Sequence[QueuedUrl]:
        from bigcrawl.features.revisits.looks import next_check_s

        visited = []
        for url in urls:
            look_s = next_check_s(url, self._modified, now_s)
            if look_s is None:
                visited.append(url)
            else:
                timed.put(url, look_s, now_s)
        return visited

    def imported(self, rows: TableRows) -> TableRows | None:
        if rows.table != _TABLE or rows.values is None:
            return rows
        self._record_visits(rows.keys, rows.values["number"])
        return None

    def _record_visits(self, keys: KeyArray, numbers: npt.NDArray[Any]) -> set[int]:
        table = self.tables[_TABLE]
        _, before = table.values(keys)
        is_later = numbers > before["number"]
        if is_later.any():
            values = np.empty(int(is_later.sum()), dtype=_VISITS)
            values["number"] = numbers[is_later]
            self.tables.commit(table, table.put(keys[is_later], values))
        return set(keys[is_later].tolist())


def _visits_before(url: QueuedUrl) -> int:
    try:
        data = known_in(url.body) if url.body else b""
    except ValueError:
        return 0
    return _number_of_visit(data) if data else 0


def _number_of_visit(data: bytes) -> int:
    from bigcrawl.revisiting.visit import Visit, VisitFormatError

    try:
        return Visit.unpack(data).number
    except (ValueError, VisitFormatError):
        return 0


FEATURE = Revisits


PAGES_MAX: Final = 1 << 17
"""Pages remembered, about 15 MB; the oldest are forgotten."""


class ListedPages(BoundedDict[int, int]):
    def __init__(self, config: RevisitConfig) -> None:
        super().__init__(PAGES_MAX)
        self._lately_s = min(config.longest_s, TRUST * config.usual_s)

    def record_pages(self, pages: Iterable[tuple[int, int]], now_s: int) -> None:
        since_s = now_s - self._lately_s
        for key, modified_s in pages:
            if modified_s >= since_s:
                self.remember(key, modified_s)
