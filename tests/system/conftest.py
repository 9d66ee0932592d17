"""The corpora, served once for all system tests."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.running.processes import no_strays_below
from tests.system.closure import Closure, link_closure
from tests.system.corpora import CORPORA, ROBOTS_AGENT, lay_out_sites
from tests.system.crawls import crawl_of
from tests.system.nginx import NginxSites

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.crawling.crawls import Crawl

HERE = Path(__file__).parent
# Crawls of minutes, most of which they wait.
LONGEST = ("test_crawl.py", "test_hostile.py")


@pytest.hookimpl(tryfirst=True)  # pytest-xdist looks for groups first of all, unless they are made before
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What shares a server or a crawl runs in one worker, everything else by itself; the longest begin first."""
    for item in items:
        if item.path.parent != HERE:
            continue
        names = getattr(item, "fixturenames", ())
        shared = (
            "served"
            if "served" in names
            else next((name for name in ("calm", "whole", "image") if name in names), None)
        )
        item.add_marker(pytest.mark.xdist_group(shared or item.nodeid))
    items.sort(key=lambda item: item.path.parent == HERE and item.path.name not in LONGEST)


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NginxSites]:
    """All sites of the corpora, served by nginx."""
    assert (CORPORA / ".stamp").exists(), f"run: scripts/fetch_corpora {CORPORA}"
    work = tmp_path_factory.mktemp("system")
    with NginxSites(lay_out_sites(work / "sites"), work / "nginx") as sites:
        yield sites


@pytest.fixture(scope="session")
def begun(served: NginxSites, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawl]:
    """The crawl of all of them to its end: it waits for its delays while the closure is read and others crawl."""
    work = tmp_path_factory.mktemp("whole")
    with no_strays_below(work), crawl_of(served, work / "crawl", "whole") as crawl:
        crawl.start()
        yield crawl


@pytest.fixture(scope="session")
def closure(served: NginxSites) -> Closure:
    """What can be reached there, by another parser."""
    return link_closure(served.seeds, served.hosts, ROBOTS_AGENT)
