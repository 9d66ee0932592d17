"""The corpora, served once for all system tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.system.closure import Closure, link_closure
from tests.system.corpora import CORPORA, ROBOTS_AGENT, lay_out_sites
from tests.system.nginx import NginxSites

if TYPE_CHECKING:
    from collections.abc import Iterator


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
