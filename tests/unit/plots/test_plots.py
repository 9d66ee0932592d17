"""The files of uPlot are those that the pages say they are."""

from __future__ import annotations

import re
from pathlib import Path

from bigcrawl import plots


def test_script_is_of_the_version_that_is_named() -> None:
    named = re.search(r"uPlot ([0-9.]+[0-9])", plots.__doc__ or "")
    assert named is not None
    assert f"(v{named[1]})" in plots.script()[:100]
    assert plots.style().startswith(".uplot")


def test_script_ends_no_element_of_a_page() -> None:
    """It is put between `<script>` and `</script>` as it is."""
    assert "</script" not in plots.script().lower()
    assert "</style" not in plots.style().lower()


def test_licence_lies_beside_it() -> None:
    assert "MIT License" in (Path(plots.__file__).parent / "LICENSE.uplot").read_text("utf-8")
