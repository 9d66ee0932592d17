from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable


class FrequentName(NamedTuple):
    name: str
    times: int
    amount: int


class FrequentNames:
    """Keeps a bounded number of names; a dropped one starts at 0 again, so its count may be too low, never too high."""

    def __init__(self, names_max: int) -> None:
        self._names_max = names_max
        self._rows: dict[str, list[int]] = {}
        self.others = 0
        self.others_amount = 0

    def __len__(self) -> int:
        return len(self._rows)

    def count_name(self, name: str, amount: int = 0, count: int = 1) -> None:
        row = self._rows.get(name)
        if row is None:
            row = self._rows[name] = [0, 0]
            if len(self._rows) > self._names_max:
                self._drop_least(name)
        row[0] += count
        row[1] += amount

    def add_all(self, rows: Iterable[FrequentName], others: int = 0, others_amount: int = 0) -> None:
        for row in rows:
            self.count_name(row.name, row.amount, row.times)
        self.others += others
        self.others_amount += others_amount

    def rows(self) -> list[FrequentName]:
        rows = [FrequentName(name, times, amount) for name, (times, amount) in self._rows.items()]
        return sorted(rows, key=lambda row: (-row.times, row.name))

    def _drop_least(self, newest: str) -> None:
        """Drop half of the names, but not the newest, which has not been counted yet."""
        for row in self.rows()[self._names_max // 2 :]:
            if row.name != newest:
                del self._rows[row.name]
                self.others += row.times
                self.others_amount += row.amount
