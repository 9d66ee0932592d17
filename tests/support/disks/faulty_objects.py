"""A store whose writes fail in a chosen way. It is a real store with a fault in front of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bigcrawl.exceptions import TransientStoreError
from bigcrawl.store.objects import ObjectStore

if TYPE_CHECKING:
    from collections.abc import Iterable

FAULTS = ("refused", "reply lost", "late")


class Killed(BaseException):
    """The process was killed here."""


class FaultyObjects(ObjectStore):
    """The next calls that change something go on as usual until `fault_in` of them were made.

    Attributes:
        fault: "refused": nothing happens; "reply lost": it happens; "late": it happens when `deliver` is called;
            "killed before" and "killed after": the process ends there.
        fault_in: how many calls succeed before the fault; -1 for no fault.
    """

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.fault = ""
        self.fault_in = -1
        self._late: list[tuple[str, bytes | None]] = []

    def put(self, name: str, data: bytes) -> None:
        self._change(name, data)

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            self._change(name, None)

    def deliver(self) -> None:
        """Carry out all late calls."""
        while self._late:
            self._carry_out(*self._late.pop(0))

    def _change(self, name: str, data: bytes | None) -> None:
        self.fault_in -= 1
        if self.fault_in != -1:
            self._carry_out(name, data)
            return
        if self.fault in ("reply lost", "killed after"):
            self._carry_out(name, data)
        if self.fault == "late":
            self._late.append((name, data))
        if self.fault.startswith("killed"):
            raise Killed
        raise TransientStoreError(f"the store {self.fault}")

    def _carry_out(self, name: str, data: bytes | None) -> None:
        if data is None:
            super().delete([name])
        else:
            super().put(name, data)
