"""A bad block in one partition, in whole crawls: the others are fetched, and it is after it was mended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.crawling.crawls import Crawl
from tests.support.crawling.verdicts import assert_complete
from tests.support.running.processes import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.crawling.crawls import SimulatedWeb

pytestmark = [pytest.mark.fault, pytest.mark.timeout(600)]

SETTINGS = {"BIGCRAWL_HOST_DELAY": 0.05, "BIGCRAWL_PARTITIONS": 8}


def test_damaged_file_costs_its_partition_until_it_is_mended(tmp_path: Path, web: SimulatedWeb) -> None:
    """The run with the damage ends with status 1 and says where; with the file restored the crawl is complete."""
    with Crawl(tmp_path / "crawl", web.seeds, dict(SETTINGS)) as crawl:
        crawl.start()
        wait_until(lambda: len(web.exchanges()) > 200, "the crawl is under way")
        crawl.terminate()
        assert crawl.wait(30) == 0
        manifest = max((tmp_path / "crawl").rglob("p0003/e*/MANIFEST"), key=lambda path: int(path.parent.name[1:]))
        sound = manifest.read_bytes()
        manifest.write_bytes(sound[:60] + bytes([sound[60] ^ 1]) + sound[61:])
        assert crawl.run(240) == 1
        said = crawl.log.read_text()
        assert f"partition 3 is set apart: {manifest}: damaged at byte" in said
        assert "all URLs that are left wait in damaged partitions" in said
        assert "Traceback" not in said
        assert web.report(delay_ms=50).coverage < 1
        manifest.write_bytes(sound)
        assert crawl.run(240) == 0
    assert_complete(web.report(delay_ms=50))
