"""What every test may ask for: a Redis of this run's own, a Redis Cluster, a crawl name nobody else has.

Async tests run their coroutine themselves, with `asyncio.run`.
"""

from __future__ import annotations

import gc
import itertools
import logging
from typing import TYPE_CHECKING

import pytest
import scrapy.core.downloader.contextfactory  # noqa: F401 - it walks over all modules, which are few yet: 2 s later on
from scrapy.utils.log import DEFAULT_LOGGING, _uninstall_scrapy_root_handler

from bigcrawl.scheduler.crawl import crawl_record
from tests.support.file_order import mixed
from tests.support.keys import SECRET
from tests.support.redis_servers.redis_cluster import PrivateCluster
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.support.running import warm
from tests.support.running.twins import TWINS, called
from tests.support.sizes import register_profiles

if TYPE_CHECKING:
    from collections.abc import Iterator

_numbers = itertools.count(1)
_SET_BY_SCRAPY: dict[str, object] = DEFAULT_LOGGING["loggers"]  # type: ignore[assignment]

register_profiles()
gc.disable()  # until all is collected, of which nothing is garbage: 2 s of 8 in each worker


def pytest_configure(config: pytest.Config) -> None:
    """Workers start commands warm from one server."""
    if getattr(config.option, "numprocesses", None):
        warm.share()


@pytest.hookimpl(tryfirst=True)  # then pytest puts together what shares a fixture
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Crawls wait most of the time: the workers that have none meanwhile get tests that compute."""
    files: dict[str, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.nodeid.partition("::")[0], []).append(item)
    crawls = [file for file in files if file.startswith("tests/integration/")]
    others = [file for file in files if not file.startswith("tests/integration/")]
    items[:] = [item for file in mixed(crawls, others) for item in files[file]]


def pytest_collection_finish() -> None:
    """From here on garbage is looked for, and not among the tests."""
    gc.freeze()
    gc.enable()


@pytest.fixture(params=TWINS, scope="module")
def twin(request: pytest.FixtureRequest) -> Iterator[None]:
    """Ask the same of each reader of links: of the one in Python and of the one in C."""
    with called(request.param):
        yield


@pytest.fixture(autouse=True)
def _known_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """Crawls that begin in this process make the keys that `tests.support.keys` makes."""
    monkeypatch.setattr(crawl_record, "new_secret", lambda: SECRET)


@pytest.fixture(autouse=True)
def _own_log_levels() -> Iterator[None]:
    """A test that runs Scrapy's command line in this process leaves its log levels to no other test."""
    loggers = [logging.getLogger(name) for name in ("", *_SET_BY_SCRAPY)]
    levels = [logger.level for logger in loggers]
    yield
    _uninstall_scrapy_root_handler()
    for logger, level in zip(loggers, levels, strict=True):
        if logger.level != level:  # setting one makes all loggers forget what they have worked out
            logger.setLevel(level)


@pytest.fixture(scope="session")
def redis_server() -> Iterator[PrivateRedis]:
    """The run's one server. A test that kills or cuts a server brings its own `PrivateRedis`."""
    with PrivateRedis() as server:
        yield server


@pytest.fixture(scope="session")
def redis_url(redis_server: PrivateRedis) -> str:
    return redis_server.url


@pytest.fixture
def crawl_name() -> str:
    """A name, and so a key prefix, that no other test of this run has."""
    return f"test{next(_numbers)}"


@pytest.fixture(scope="session")
def redis_cluster() -> Iterator[PrivateCluster]:
    """Three masters, started by the first test that asks."""
    with PrivateCluster() as cluster:
        yield cluster
