"""A crawl with requisites is packed as WACZ, found valid, and looks the same when pywb replays it in Chromium."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.annexes.rendering.reading import counted
from tests.support.replaying.screenshots import compare
from tests.support.replaying.wacz import assert_valid
from tests.support.running.processes import no_strays_below

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.system

PAGES = 7


def test_replayed_pages_look_as_they_did_live(tmp_path: Path) -> None:
    """Each of them, pixel by pixel, with the site down; only pages are listed, those in frames too."""
    with no_strays_below(tmp_path):
        compared = compare(tmp_path, PAGES, "any")
        assert compared.different == []
        assert len({look.picture for look in compared.live.values()}) == PAGES
        assert PAGES <= compared.packed["pages"] < 2 * PAGES
        assert compared.packed["captures"] > 10 * PAGES
        assert_valid(tmp_path / "crawl.wacz")


def test_pages_that_scripts_write_look_as_they_did_live(tmp_path: Path) -> None:
    """The renderer stores what scripts ask for, and what the document then shows is fetched as its requisites."""
    with no_strays_below(tmp_path):
        compared = compare(tmp_path, PAGES, "any", is_rendered=True)
        counts = counted(compared.log)
        assert counts["pages"] == PAGES, counts
        assert counts.keys().isdisjoint({"cut", "raw/suspect", "raw/failed"}), counts
        assert compared.different == []
        assert len({look.picture for look in compared.live.values()}) == PAGES


def test_without_requisites_replayed_pages_look_different(tmp_path: Path) -> None:
    """So that the other test has something to find."""
    with no_strays_below(tmp_path):
        assert compare(tmp_path, 2, "off").share == 0
