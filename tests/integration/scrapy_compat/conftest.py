"""One site and one project for all tests here; each crawl has a name of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration.scrapy_compat.project import Project
from tests.integration.scrapy_compat.site import Site

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def _served() -> Iterator[Site]:
    with Site() as site:
        yield site


@pytest.fixture
def site(_served: Site) -> Site:
    """The site, with an empty log."""
    _served.forget()
    return _served


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory, redis_url: str) -> Project:
    return Project(tmp_path_factory.mktemp("somebody") / "project", redis_url)
