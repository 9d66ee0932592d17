"""What every test of downloads may count on."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import pytest

from bigcrawl.scheduler.adapter import registry


@pytest.fixture(autouse=True)
def _no_frontiers_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A frontier that another test left, which may not be collected yet, refuses no address of ours."""
    monkeypatch.setattr(registry, "_frontiers", WeakKeyDictionary())
