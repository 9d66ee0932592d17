"""Pages with the right answer: whether a browser shows text or links that their bytes lack."""

from __future__ import annotations

import re
from typing import NamedTuple

from tests.support.imports import PROJECT


class Fixture(NamedTuple):
    name: str
    needs_browser: bool
    page: str


def fixtures(name: str) -> list[Fixture]:
    """Return the pages of a file below tests/data/rendering, each behind a line `=== yes|no NAME`."""
    text = (PROJECT / "tests" / "data" / "rendering" / f"{name}.txt").read_text("utf-8")
    _, *parts = re.split(r"^=== (yes|no) (\S+)\n", text, flags=re.MULTILINE)
    return [Fixture(parts[at + 1], parts[at] == "yes", parts[at + 2]) for at in range(0, len(parts), 3)]
