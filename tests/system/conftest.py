"""The corpora, served once for all system tests, and which of these share a worker."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

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
LONGEST = ("test_crawl.py", "test_hostile.py", "test_scrapyd.py")
# How the names of tests begin that share a fixture, which takes minutes to make. Tests are given to workers by their
# names alone.
SHARED: Final = {
    "test_closure.py": "served",
    "test_crawl.py": "served",
    "test_dashboard.py": "watched",
    "test_everything.py": "whole",
    "test_hostile.py::TestCalm": "calm",
    "test_ops.py::test_a_signal_without_a_handler_ends_a_node": "image",
    "test_ops.py::test_pods_with_disks_of_their_own": "image",
    "test_ops.py::test_three_nodes_of_the_image": "image",
}


def group_of(nodeid: str) -> str:
    """What a test shares with others; its own name, if nothing."""
    name = nodeid.removeprefix("tests/system/")
    return next((shared for beginning, shared in SHARED.items() if name.startswith(beginning)), nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """What shares a server or a crawl runs in one worker, everything else by itself.

    Not by the marks of pytest-xdist, which it puts into names: since pytest 9.2 they have no effect.
    """
    from xdist.scheduler import LoadScopeScheduling

    class SharedScheduling(LoadScopeScheduling):  # type: ignore[misc]  # has no types
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

    return SharedScheduling(config, log) if config.getoption("dist") == "loadgroup" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest begin first. A fixture that workers would make one after the other is an error."""
    groups = defaultdict(set)
    for item in items:
        if item.path.parent == HERE:
            for name in {*SHARED.values()}.intersection(getattr(item, "fixturenames", ())):
                groups[name].add(group_of(item.nodeid))
    if apart := [name for name, found in groups.items() if len(found) > 1]:
        raise pytest.UsageError(f"tests that share {', '.join(apart)} are not all in SHARED, tests/system/conftest.py")
    items.sort(key=lambda item: item.path.parent == HERE and item.path.name not in LONGEST)


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NginxSites]:
    """All sites of the corpora, served by nginx."""
    assert (CORPORA / ".stamp").exists(), f"run: scripts/fetch_corpora {CORPORA}"
    work = tmp_path_factory.mktemp("system")
    if run := os.environ.get("PYTEST_XDIST_TESTRUNUID"):
        (work.parents[1] / f"served-{run}").mkdir()  # fails in a second worker: SharedScheduling has no effect
    with NginxSites(lay_out_sites(work / "sites"), work / "nginx") as sites:
        yield sites


@pytest.fixture(scope="session")
def begun(served: NginxSites, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawl]:
    """The crawl of all of them to its end: it waits for its delays while the closure is read and others crawl."""
    work = tmp_path_factory.mktemp("whole")
    with no_strays_below(work), crawl_of(served, work / "crawl", "whole", BIGCRAWL_PARTITIONS=None) as crawl:
        crawl.start()
        yield crawl


@pytest.fixture(scope="session")
def closure(served: NginxSites) -> Closure:
    """What can be reached there, by another parser."""
    return link_closure(served.seeds, served.hosts, ROBOTS_AGENT)
