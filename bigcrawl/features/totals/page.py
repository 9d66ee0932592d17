from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.features.totals.fold import FETCHED
from bigcrawl.features.totals.limits import BYTES
from bigcrawl.scheduler.handout.observers import Observer
from bigcrawl.scheduler.records.outcomes import pack_mark

if TYPE_CHECKING:
    from bigcrawl.scheduler.handout.observers import NodeSide
    from bigcrawl.scheduler.records.held import HeldUrl

_KIB_MAX = 0xFFFF  # in one mark


def observer_of(side: NodeSide) -> FetchedBytes:
    return FetchedBytes(side)


class FetchedBytes(Observer):
    def __init__(self, side: NodeSide) -> None:
        self._limited = side.limited
        self._limit_of = side.limit_of

    def marks_of_end(self, held: HeldUrl) -> bytes:
        if not held.fetched_bytes or BYTES not in self._limited:
            return b""
        limit = self._limit_of(BYTES, held.host, held.url)
        return pack_fetched(limit.account, held.fetched_bytes) if limit else b""


def pack_fetched(account: int, fetched_bytes: int) -> bytes:
    whole, rest = divmod(-(-fetched_bytes // 1024), _KIB_MAX)
    marks = pack_mark(account, FETCHED, _KIB_MAX) * whole
    return marks + pack_mark(account, FETCHED, rest) if rest else marks
