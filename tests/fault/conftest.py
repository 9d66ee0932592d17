"""What the fault tests share: a simulated web, and what a crawl of it must have come to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.crawling.crawls import SimulatedWeb
from tests.support.running.processes import no_strays_below

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def web(tmp_path: Path) -> Iterator[SimulatedWeb]:
    with no_strays_below(tmp_path), SimulatedWeb(tmp_path / "web", hosts=40, pages=40) as served:
        yield served
