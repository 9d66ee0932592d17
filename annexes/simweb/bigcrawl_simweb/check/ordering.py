"""Sorts exchanges by start, because servers log them in order of their ends."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final

import numpy as np

from bigcrawl_simweb.basics.exchange import Exchange

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

_CHUNK: Final = 4096


class _StringColumn:
    """A column of strings that stores each distinct one once."""

    def __init__(self) -> None:
        self._numbers = array("i")
        self._number_of: dict[str, int] = {}
        self._words: list[str] = []

    def append(self, word: str) -> None:
        self._numbers.append(self._number_of.setdefault(word, len(self._number_of)))

    def at(self, rows: NDArray[np.int64]) -> list[str]:
        return [self._words[number] for number in np.asarray(self._numbers)[rows].tolist()]

    def end(self) -> None:
        self._words = list(self._number_of)
        self._number_of.clear()


def by_start(exchanges: Iterable[Exchange]) -> Iterator[Exchange]:
    """Yield exchanges by their start, stably. Cost: 56 bytes per exchange, and each distinct string once."""
    starts, ends, statuses, waits = numbers = tuple(array("q") for _ in range(4))
    hosts, targets, servers, faults = columns = tuple(_StringColumn() for _ in range(4))
    for exchange in exchanges:
        starts.append(exchange.start_ms)
        ends.append(exchange.end_ms)
        statuses.append(exchange.status)
        waits.append(exchange.retry_after_ms)
        hosts.append(exchange.host)
        targets.append(exchange.target)
        servers.append(exchange.server)
        faults.append(exchange.fault)
    order = np.argsort(np.asarray(starts), kind="stable")
    for column in columns:
        column.end()
    for first in range(0, len(order), _CHUNK):
        rows = order[first : first + _CHUNK]
        start, end, status, wait = (np.asarray(values)[rows].tolist() for values in numbers)
        host, target, server, fault = (column.at(rows) for column in columns)
        yield from map(Exchange, start, end, host, target, status, server, fault, wait)
