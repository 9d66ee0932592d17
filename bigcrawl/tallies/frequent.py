"""The most frequent names of many, each with how often it came and an amount."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable


class FrequentName(NamedTuple):
    """A name, how often it came, and the sum of its amounts."""

    name: str
    times: int
    amount: int


class Frequent:
    """Keeps some names. If there are more, those that came least often are counted together.

    A name that was dropped and comes again begins at 0, so a count may be too low, never too high. One that is more
    frequent than half of those kept is never dropped.

    Attributes:
        others: how often the names came that are not kept.
        others_amount: the sum of their amounts.
    """

    def __init__(self, names_max: int) -> None:
        self._names_max = names_max
        self._rows: dict[str, list[int]] = {}
        self.others = 0
        self.others_amount = 0

    def __repr__(self) -> str:
        return f"<Frequent names={len(self._rows)} others={self.others}>"

    def __len__(self) -> int:
        return len(self._rows)

    def note(self, name: str, amount: int = 0, count: int = 1) -> None:
        """The name came `count` times more. Cost: 0.2 us."""
        row = self._rows.get(name)
        if row is None:
            row = self._rows[name] = [0, 0]
            if len(self._rows) > self._names_max:
                self._drop_least(name)
        row[0] += count
        row[1] += amount

    def add_all(self, rows: Iterable[FrequentName], others: int = 0, others_amount: int = 0) -> None:
        """Add the rows of another one, and its others."""
        for row in rows:
            self.note(row.name, row.amount, row.times)
        self.others += others
        self.others_amount += others_amount

    def rows(self) -> list[FrequentName]:
        """Return the names that are kept, the most frequent first."""
        rows = [FrequentName(name, times, amount) for name, (times, amount) in self._rows.items()]
        return sorted(rows, key=lambda row: (-row.times, row.name))

    def _drop_least(self, newest: str) -> None:
        """Drop half of the names; not the newest, which has not been counted yet."""
        for row in self.rows()[self._names_max // 2 :]:
            if row.name != newest:
                del self._rows[row.name]
                self.others += row.times
                self.others_amount += row.amount
