"""A partition's inbox, as its owner sees it (step 4): how it is read, what waits there, and what the owner put there.

What the owner puts there are URLs that go back from Redis to the disk, unfetched. A Redis that forgets its last seconds
has those in their back queues again. Those that a committed step has merged meanwhile are on disk too, and are taken
out of the queues when both sides are compared; of the others the inbox forgot as much as the queues did.
"""

from __future__ import annotations

from array import array
from collections import deque
from typing import TYPE_CHECKING, Any

from bigcrawl.redisdb.replies import pairs_of
from bigcrawl.scheduler.partition.manifest import NO_INBOX_ID
from bigcrawl.scheduler.records.held_urls import KEEP_ENDED_MS
from bigcrawl.scheduler.records.inbox_entry import FIELDS, OUTCOMES, InboxEntry, id_order

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bigcrawl.redisdb.scripts import PartitionView, Value

_ONE_FIELD = 2  # its name and its value
_new_tuple = tuple.__new__  # the class's own constructor is Python


class InboxReader:
    """Of one partition.

    Attributes:
        has_urls: whether URLs wait, for all that is known.
        has_others: whether entries of any kind wait; those without URLs are in no haste.
        has_more: whether the last step did not take all that waited.
        unfolded_urls: URLs that waited when Redis was last asked.
    """

    def __init__(self, key: str) -> None:
        self._key = key
        self.has_urls = True
        self.has_others = False
        self.has_more = False
        self.unfolded_urls = 0
        self._miscounted = 0  # appended but never folded, when nothing waited: rejected, or forgotten by Redis
        self._asked = 0  # entries that the step under way has asked for
        self._read_upto = NO_INBOX_ID  # the last of those it got

    def __repr__(self) -> str:
        return f"<InboxReader has_urls={self.has_urls} has_others={self.has_others} unfolded={self.unfolded_urls}>"

    def note_urls(self) -> None:
        """URLs were sent, or may have been."""
        self.has_urls = True

    def note_others(self) -> None:
        """Entries were sent that may bring no URLs: outcomes."""
        self.has_others = True

    def note_view(self, view: PartitionView, folded: str) -> None:
        """Learn from a look at Redis whether entries wait behind the last one folded, and whether they bring URLs."""
        unfolded = view.count("appended_urls") - view.count("folded_urls")
        inbox_id = id_order(view.inbox_id)
        # A Redis that is new has counted from zero what is appended, the disk what is folded from the crawl's start.
        if inbox_id <= id_order(view.folded) or unfolded < self._miscounted:
            self._miscounted = unfolded
        self.unfolded_urls = unfolded - self._miscounted
        if inbox_id > id_order(folded):
            self.has_others = True
            self.has_urls = self.has_urls or unfolded != self._miscounted

    def command(self, folded: str, entries_max: int) -> tuple[Value, ...]:
        """The command that reads entries behind the last one folded, oldest first."""
        self._asked = entries_max
        return ("XRANGE", self._key, "(" + folded, "+", "COUNT", entries_max)

    def parse(self, reply: Any) -> list[InboxEntry]:
        """The entries that `command` brought."""
        entries = [_entry(entry_id.decode(), fields) for entry_id, fields in reply]
        self._read_upto = entries[-1].id if entries else NO_INBOX_ID
        return entries

    def note_step(self, folded: str, entries: int) -> None:
        """A step is committed that was handed so many entries, and has folded them up to this one."""
        self.unfolded_urls = 0
        if self._asked:
            # A step stops before an entry that forgets.
            is_cut = id_order(self._read_upto) > id_order(folded)
            self.has_urls = self.has_others = self.has_more = is_cut or entries >= self._asked
        self._asked = 0


class MovedUrls:
    """URLs that went back to the inbox in the last seconds: by when, their entry and host; 8 bytes a URL, its place."""

    def __init__(self) -> None:
        self._moves: deque[tuple[int, str, str, array[int]]] = deque()

    def __repr__(self) -> str:
        return f"<MovedUrls of {len(self._moves)} calls>"

    def note(self, entry_id: str, host: str, orders: Iterable[int], now_ms: int) -> None:
        """URLs of a host, each with its order, are in this inbox entry now."""
        self._moves.append((now_ms, entry_id, host, array("q", orders)))
        while self._moves[0][0] < now_ms - KEEP_ENDED_MS:
            self._moves.popleft()

    def merged(self, folded: str) -> list[tuple[str, int]]:
        """The places, (host, order), of those whose inbox entry is merged when all are up to `folded`."""
        upto = id_order(folded)
        return [
            (host, order) for _, entry_id, host, orders in self._moves if id_order(entry_id) <= upto for order in orders
        ]


def _entry(entry_id: str, fields: Any) -> InboxEntry:
    if len(fields) == _ONE_FIELD and fields[0] == OUTCOMES:  # most are of this kind
        return _new_tuple(InboxEntry, (entry_id, b"", b"", fields[1], b""))
    found = dict(pairs_of(fields))
    return InboxEntry(entry_id, *[found.get(name, b"") for name in FIELDS])
