"""Where exports and their like keep files for a moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bigcrawl.exceptions import TransientStoreError
from bigcrawl.views.newest_files import place_for_links

if TYPE_CHECKING:
    from pathlib import Path


def test_a_place_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    """The error names the directory, so that a command prints it and no traceback."""
    (tmp_path / "file").touch()
    with (
        pytest.raises(TransientStoreError, match=r"file/crawl cannot be written"),
        place_for_links(tmp_path / "file" / "crawl"),
    ):
        pass
