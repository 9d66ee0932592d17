"""URLs of a partition that went from Redis back to its inbox in the last seconds, unfetched.

A Redis that forgets those seconds has them in their back queues again. Those that a committed step has merged meanwhile
are on disk too, and are taken out of the queues when both sides are compared; of the others the inbox forgot as much
as the queues did.
"""

from __future__ import annotations

from array import array
from collections import deque
from typing import TYPE_CHECKING

from bigcrawl.scheduler.records.held_urls import KEEP_ENDED_MS
from bigcrawl.scheduler.records.inbox_entry import id_order

if TYPE_CHECKING:
    from collections.abc import Iterable


class MovedUrls:
    """By when Redis was heard of them, their inbox entry and host; 8 bytes a URL: its place in the back queue."""

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
