"""The frontier's own check: each new URL is found once, and its bytes are counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.drum_cost import frontier_check
from benchmarks.drum_cost.frontier_check import measure
from benchmarks.drum_cost.trial import WrongVerdictsError
from benchmarks.drum_cost.urls import UNIQUE_SHARE

if TYPE_CHECKING:
    from pathlib import Path


def test_each_new_url_is_found_once_and_costs_less_in_larger_steps(tmp_path: Path) -> None:
    """The queues hold the new URLs, compressed; the keys of URLSeen are in the manifest until there are enough."""
    small, large = (measure(12_000, step, tmp_path / f"{step}") for step in (250, 3_000))
    assert small.steps > 8 * large.steps
    assert 0 < small.queues < UNIQUE_SHARE
    assert 0 < large.manifests < small.manifests


def test_a_wrong_verdict_is_an_error_and_no_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frontier_check.FoundNew, "add", lambda self, urls: None)
    with pytest.raises(WrongVerdictsError):
        measure(2_000, 250, tmp_path / "partitions")
