"""Points that their owner deletes while a command reads them."""

from __future__ import annotations

import os
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.exceptions import CorruptionError, TransientStoreError
from bigcrawl.scheduler.queues.epoch_directory import epoch_path
from bigcrawl.store.objects import ObjectStore
from bigcrawl.store.series import SMALL_BYTES, PointSeries
from bigcrawl.views import newest_files as module
from bigcrawl.views.newest_files import newest_files

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Owner:
    """The owner of partition 3, which writes points, and deletes what their two newest do not need."""

    def __init__(self, url: str) -> None:
        self._series = PointSeries(ObjectStore(url), "c/p0003")
        self.number = 0

    def put(self, points: int = 1) -> None:
        for _ in range(points):
            self.number += 1
            name, data = f"run-{self.number}", b"%d" % (self.number % 10) * (SMALL_BYTES + 1)
            read = partial(_slice, data)
            self._series.put(1, self.number, b"state", {name: len(data)}, read)
            self._series.clear()


def _slice(data: bytes, name: str, at: int, size: int) -> bytes:
    return data[at : at + size]


class At:
    """A crawl with a store; `before_get` is called before each object is read."""

    def __init__(self, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        url = f"file://{place}/store"
        self.owner, self.place, self.store = Owner(url), place, place / "store" / "c" / "p0003"
        self.reads = 0
        self.before_get: Callable[[], Any] = lambda: None
        at = self

        class Watched(ObjectStore):
            def get(self, name: str) -> bytes | None:
                at.reads += 1
                at.before_get()
                return super().get(name)

        monkeypatch.setattr(module, "ObjectStore", Watched)
        config = SimpleNamespace(store=SimpleNamespace(url=url), crawl=SimpleNamespace(name="c"))
        self.crawl: Any = SimpleNamespace(config=config, directory=lambda partition: place / "state" / "p0003")

    def names(self) -> list[str]:
        """The files that a command would read."""
        directory = newest_files(self.crawl, 3, lambda: self.place / "fetched")
        return sorted(os.listdir(epoch_path(directory, 1)))  # noqa: PTH208


@pytest.mark.parametrize("read", [1, 2])
def test_a_point_that_is_deleted_while_it_is_read_is_followed_by_the_newest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: int
) -> None:
    """Whether the point is gone before it is read, or a file of it is."""
    at = At(tmp_path, monkeypatch)
    at.owner.put(3)
    at.before_get = lambda: at.owner.put(3 if at.reads == read else 0)
    assert at.names() == ["MANIFEST", "run-6"]


def test_points_that_are_replaced_again_and_again_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The crawl is not damaged; what helps is said."""
    at = At(tmp_path, monkeypatch)
    at.owner.put()
    at.before_get = lambda: at.owner.put(3)
    with pytest.raises(TransientStoreError, match=r"partition 3 .* replaced faster .* frontier pause"):
        at.names()


def test_an_object_that_is_missing_is_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If no point has come since; it is read once."""
    at = At(tmp_path, monkeypatch)
    at.owner.put()
    (piece,) = at.store.glob("e1/*.1/*")
    at.before_get = lambda: piece.unlink() if at.reads == 2 else None
    with pytest.raises(CorruptionError, match="run-1"):
        at.names()
    assert at.reads == 2
