"""One crawl on nodes of several versions of bigcrawl, each a copy of the package in a process of its own."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bigcrawl import __version__
from tests.support.crawling.crawls import Crawl, SimulatedWeb, held
from tests.support.running.processes import no_strays_below, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.long("two more nodes that start cold; test_membership has who may join")

PACKAGE = Path(__file__).parents[3] / "bigcrawl"
MAJOR, MINOR, PATCH = __version__.split(".")[:3]
NEXT_PATCH = f"{MAJOR}.{MINOR}.{int(PATCH) + 1}"
NEXT_MINOR = f"{MAJOR}.{int(MINOR) + 1}.0"
DELAY_MS = 1_000


@pytest.fixture
def of_version(tmp_path: Path) -> Callable[[Crawl, str], Crawl]:
    """Make another node of a crawl, which runs a copy of the package with this version."""

    def make(crawl: Crawl, version: str) -> Crawl:
        tree = tmp_path / f"bigcrawl-{version}"
        shutil.copytree(PACKAGE, tree / "bigcrawl")  # with what is compiled
        init = tree / "bigcrawl" / "__init__.py"
        was = init.read_text()
        init.write_text(was.replace(f'__version__ = "{__version__}"', f'__version__ = "{version}"'))
        assert init.read_text() != was
        environment = {"PYTHONPATH": str(tree), "PYTHONSAFEPATH": "1"}  # not that of the working directory
        settings = {**crawl.settings, "BIGCRAWL_STATE_DIR": crawl.directory / "state", "BIGCRAWL_WARC_DIR": tree}
        directory = tmp_path / f"node-{version}"
        return Crawl(directory, crawl.seeds, settings, name=crawl.name, environment=environment, cold=True)

    return make


@pytest.mark.timeout(600)
def test_nodes_of_one_minor_release_share_a_crawl_and_others_are_refused(
    tmp_path: Path, of_version: Callable[[Crawl, str], Crawl]
) -> None:
    """Both fetch and the crawl ends, each page once. The next minor release does not start, and leaves no trace."""
    with no_strays_below(tmp_path), SimulatedWeb(tmp_path / "web", hosts=16, pages=12) as web:
        settings = {"BIGCRAWL_HOST_DELAY": DELAY_MS / 1000, "BIGCRAWL_PARTITIONS": 16}
        with Crawl(tmp_path / "crawl", web.seeds, settings) as old:
            old.start()
            wait_until(lambda: len(web.exchanges()) > 20, "the crawl is under way")
            with of_version(old, NEXT_PATCH) as new, of_version(old, NEXT_MINOR) as other:
                with held(old, web):
                    new.start()
                    wait_until(lambda: _versions(old) == {__version__, NEXT_PATCH}, "both have joined", timeout_s=240)
                    assert other.run() == 1
                    said = other.log.read_text()
                    assert f"bigcrawl is {NEXT_MINOR} here and " in said
                    assert "nodes of one minor release work together" in said
                    assert "Traceback" not in said
                    assert _versions(old) == {__version__, NEXT_PATCH}
                assert (old.wait(300), new.wait(300)) == (0, 0)
                for node in (old, new):
                    assert _fetched(node) > 0
        report = web.report(delay_ms=DELAY_MS)
        assert not report.kinds, str(report)


def _versions(crawl: Crawl) -> set[str]:
    return {row["version"] for row in crawl.asked("nodes")["nodes"]}


def _fetched(crawl: Crawl) -> int:
    """How many answers a node has had, by its stats."""
    found = re.search(r"'response_received_count': (\d+)", crawl.log.read_text())
    return int(found.group(1)) if found else 0
