"""A store whose URL comes to name another directory, as when a disk is unmounted or restored, before any call."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, TypeVar

from tests.support.disks.faulty_objects import FaultyObjects

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

T = TypeVar("T")

RIGHT = "right"
CHANGES = ("unmounted", "another", "empty", "old")


class ChangingStore(FaultyObjects):
    """The store of a crawl, and the directories that its URL may name besides.

    Attributes:
        calls: how many there were.
        changes: what the URL names from before the call of this number on.
        named: what it names.
    """

    def __init__(self, place: Path, mark: str) -> None:
        super().__init__(f"file://{place}/store")
        self._directory, self._place = place / "store", place
        self.calls = 0
        self.changes: dict[int, str] = {}
        self.named = RIGHT
        for name, mark_there in (("unmounted", ""), ("another", "crawl/store-other"), ("empty", "")):
            (place / name).mkdir()
            if mark_there:
                (place / name / mark_there).parent.mkdir()
                (place / name / mark_there).touch()
        self.put(mark, b"")
        self.require_mark(mark)

    def keep_copy(self) -> None:
        """What is there now is the old copy from now on."""
        shutil.rmtree(self._place / "old", ignore_errors=True)
        shutil.copytree(self._directory, self._place / "old")

    def change(self, named: str) -> None:
        """Let the URL name another directory."""
        self._directory.rename(self._place / self.named)
        (self._place / named).rename(self._directory)
        self.named = named

    def _call_in_thread(self, work: Callable[[], T]) -> T:
        if named := self.changes.get(self.calls):
            self.change(named)
        self.calls += 1
        return super()._call_in_thread(work)
