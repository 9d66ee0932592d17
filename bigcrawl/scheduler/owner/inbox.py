"""The owner's side of a partition's inbox: how to read it, its state, and the URLs that the owner put there.

The owner itself moves URLs from Redis back to the inbox when they are to wait on disk, unfetched. A Redis that forgets
its last seconds has these URLs in their back queues again. If a step has folded them meanwhile, they are on disk too,
and a comparison removes them from the back queues. Otherwise the inbox has forgotten them as well, and they wait in
their back queues alone.
"""

from __future__ import annotations

from array import array
from collections import deque
from typing import TYPE_CHECKING, Any

from bigcrawl.redisdb.crawl_clock import FORGETTABLE_MS
from bigcrawl.redisdb.replies import pairs_of
from bigcrawl.scheduler.partition.manifest import NO_INBOX_ID
from bigcrawl.scheduler.records.inbox_entry import FIELDS, OUTCOMES, InboxEntry, id_order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from bigcrawl.redisdb.scripts import PartitionView, Value

_ONE_FIELD = 2
_NO_ORDER = id_order(NO_INBOX_ID)
_new_tuple = tuple.__new__


class InboxReader:
    """Reads the inbox of one partition, and remembers its state between reads.

    Attributes:
        has_urls: whether URLs may be waiting.
        has_others: whether entries without URLs may be waiting, which are not urgent.
        has_more: whether the last step left entries behind.
    """

    def __init__(self, key: str, tell: Callable[[], None] = lambda: None, *, has_urls: bool = True) -> None:
        self._key = key
        self._tell = tell
        self.has_urls = has_urls
        self.has_others = False
        self.has_more = False
        self.unfolded_urls = 0
        self._miscounted = 0  # URLs that seem to wait when none does: they were rejected, or Redis has forgotten them
        self._asked = 0
        self._read_upto = NO_INBOX_ID
        self._discard_notices()

    def _discard_notices(self) -> None:
        """Discard earlier notices, as this step reads now; later notices may be about entries that it misses."""
        self._were_urls_noted = self._were_others_noted = False
        self._seen_upto = self._seen_urls_upto = _NO_ORDER

    def record_urls(self) -> None:
        self.has_urls = self._were_urls_noted = True
        self._tell()

    def record_others(self) -> None:
        self.has_others = self._were_others_noted = True
        self._tell()

    def record_view(self, view: PartitionView, folded: str) -> None:
        """Find out from a view of Redis whether entries follow the last folded one, and whether they have URLs."""
        unfolded = view.count("appended_urls") - view.count("folded_urls")
        inbox_id = id_order(view.inbox_id)
        # A new Redis counts appended URLs from zero, the disk folded ones since the crawl began.
        if inbox_id <= id_order(view.last_folded_entry) or unfolded < self._miscounted:
            self._miscounted = unfolded
        self.unfolded_urls = unfolded - self._miscounted
        if inbox_id > id_order(folded):
            self.has_others = True
            self._seen_upto = inbox_id
            if unfolded != self._miscounted:
                self.has_urls = True
                self._seen_urls_upto = inbox_id
            self._tell()

    def command(self, folded: str, entries_max: int) -> tuple[Value, ...]:
        self._asked = entries_max
        self._discard_notices()
        return ("XRANGE", self._key, "(" + folded, "+", "COUNT", entries_max)

    def parse(self, reply: Any) -> list[InboxEntry]:
        entries = [_parse_entry(entry_id.decode(), fields) for entry_id, fields in reply]
        self._read_upto = entries[-1].id if entries else NO_INBOX_ID
        return entries

    def record_step(self, folded: str, entries: int) -> None:
        """Record a committed step that got `entries` entries; `folded` is the last one that it folded."""
        self.unfolded_urls = 0
        if self._asked:
            # A step stops before an entry that forgets.
            folded_upto = id_order(folded)
            is_cut = id_order(self._read_upto) > folded_upto
            self.has_more = is_cut or entries >= self._asked
            self.has_urls = self.has_more or self._were_urls_noted or self._seen_urls_upto > folded_upto
            self.has_others = self.has_more or self._were_others_noted or self._seen_upto > folded_upto
        self._asked = 0


class MovedUrls:
    """The URLs last moved back to the inbox, 8 bytes each, with their entries; kept while Redis may forget the move."""

    def __init__(self) -> None:
        self._moves: deque[tuple[int, str, str, array[int]]] = deque()

    def record_move(self, entry_id: str, host: str, orders: Iterable[int], running_ms: int) -> None:
        self._moves.append((running_ms, entry_id, host, array("q", orders)))
        while self._moves[0][0] < running_ms - FORGETTABLE_MS:
            self._moves.popleft()

    def places_of_merged(self, folded: str) -> list[tuple[str, int]]:
        """Return the places (host, order) of URLs whose inbox entry is folded; `folded` is the last folded entry."""
        upto = id_order(folded)
        return [
            (host, order) for _, entry_id, host, orders in self._moves if id_order(entry_id) <= upto for order in orders
        ]


def _parse_entry(entry_id: str, fields: Any) -> InboxEntry:
    if len(fields) == _ONE_FIELD and fields[0] == OUTCOMES:  # most are of this kind
        return _new_tuple(InboxEntry, (entry_id, b"", b"", fields[1], b"", b"", b"", b"", b""))
    found = dict(pairs_of(fields))
    return InboxEntry(entry_id, *[found.get(name, b"") for name in FIELDS])
