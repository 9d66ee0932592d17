"""The corpora, served once for all system tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.system.closure import Closure, link_closure
from tests.system.corpora import CORPORA, ROBOTS_AGENT, lay_out_sites
from tests.system.nginx import NginxSites

if TYPE_CHECKING:
    from collections.abc import Iterator


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What shares a server or a crawl stays in one process of `--dist loadgroup`; the rest may run beside it."""
    for item in items:
        names = getattr(item, "fixturenames", ())
        if "served" in names:
            item.add_marker(pytest.mark.xdist_group("corpora"))
        elif "test_everything" in item.nodeid or "calm" in names:
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NginxSites]:
    """All sites of the corpora, served by nginx."""
    assert (CORPORA / ".stamp").exists(), f"run: scripts/fetch_corpora {CORPORA}"
    work = tmp_path_factory.mktemp("system")
    with NginxSites(lay_out_sites(work / "sites"), work / "nginx") as sites:
        yield sites


@pytest.fixture(scope="session")
def closure(served: NginxSites) -> Closure:
    """What can be reached there, by another parser."""
    return link_closure(served.seeds, served.hosts, ROBOTS_AGENT)
