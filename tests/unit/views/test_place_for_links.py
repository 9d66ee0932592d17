"""Where commands that move a crawl put links to its files, or what they fetch from a store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bigcrawl.exceptions import TransientStoreError
from bigcrawl.views.newest_files import place_for_links

if TYPE_CHECKING:
    from pathlib import Path


def test_a_place_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    """And not the file that the command writes, whose directory may have all the room there is."""
    (tmp_path / "state").touch()
    with pytest.raises(TransientStoreError, match=str(tmp_path / "state")), place_for_links(tmp_path / "state" / "c"):
        pass


def test_a_place_is_deleted_and_one_that_a_killed_command_left_too(tmp_path: Path) -> None:
    """The crawl's own directories stay."""
    for name in ("export-left", "p0000"):
        (tmp_path / name).mkdir()
    with place_for_links(tmp_path) as place:
        assert sorted(path.name for path in tmp_path.iterdir()) == sorted([place.name, "p0000"])
    assert [path.name for path in tmp_path.iterdir()] == ["p0000"]
