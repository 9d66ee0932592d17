"""The origin, and the runs that all tests here look at: each is made once, when the first test asks."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.downloads import sides, tables
from tests.integration.downloads.certificate import write_certificate
from tests.integration.downloads.origin import Origin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tests.integration.downloads.sides import Seen

_MIDDLEWARES = "tests.integration.downloads.project.middlewares"
WATCHED_SETTINGS: Mapping[str, Any] = {
    "DOWNLOADER_MIDDLEWARES": {
        f"{_MIDDLEWARES}.Plain": 10,
        f"{_MIDDLEWARES}.Async": 450,
        f"{_MIDDLEWARES}.WithSpider": 595,
        f"{_MIDDLEWARES}.AsyncWithSpider": 700,
        f"{_MIDDLEWARES}.RequestOnly": 800,
        f"{_MIDDLEWARES}.Deferreds": 950,
    },
    "EXTENSIONS": {"tests.integration.downloads.project.watch.Watch": 500},
}

SURROUNDED_SETTINGS: Mapping[str, Any] = {
    "COMPRESSION_ENABLED": False,
    "COOKIES_ENABLED": False,
    "DEFAULT_REQUEST_HEADERS": {"Accept": "*/*", "X-Default": "1"},
    "DOWNLOAD_BIND_ADDRESS": "127.0.1.7",
    "DOWNLOAD_FAIL_ON_DATALOSS": False,
    "DOWNLOAD_MAXSIZE": 50_000,
    "DOWNLOAD_TIMEOUT": 15.0,  # which only the row that is too slow may reach, on a busy machine too
    "DOWNLOAD_VERIFY_CERTIFICATES": True,
    "DOWNLOAD_WARNSIZE": 1_000,
    "FILES_STORE": "files",
    "HTTPAUTH_DOMAIN": None,
    "HTTPAUTH_PASS": "pass",
    "HTTPAUTH_USER": "user",
    "HTTPCACHE_ENABLED": True,
    "HTTPCACHE_IGNORE_HTTP_CODES": [500],
    "ITEM_PIPELINES": {"scrapy.pipelines.files.FilesPipeline": 1},
    "REDIRECT_ENABLED": False,
    "RETRY_ENABLED": False,
    "USER_AGENT": "conform/1.0",
}
_HANDLERS = "tests.integration.downloads.project.handlers"
_AIOHTTP = "scrapy.core.downloader.handlers._aiohttp.AiohttpDownloadHandler"
_OWN_SCHEMES = {"own": f"{_HANDLERS}.Own", "old": f"{_HANDLERS}.Old", "failing": f"{_HANDLERS}.Failing", "file": None}
HANDLED_SETTINGS: Mapping[str, Any] = {
    "DOWNLOAD_HANDLERS": {"http": f"{_HANDLERS}.Own", "https": _AIOHTTP, **_OWN_SCHEMES}
}
HANDLED_OTHERWISE_SETTINGS: Mapping[str, Any] = {
    "DOWNLOAD_HANDLERS": {
        "http": _AIOHTTP,
        # Without the package h2 it does not load, and https has no handler then: on both sides.
        "https": "scrapy.core.downloader.handlers.http2.H2DownloadHandler",
        **_OWN_SCHEMES,
    }
}


STOCK, OURS, ALONE = "127.87", "127.88", "127.89"
DELAY_S = 1.2
ALONE_SETTINGS: Mapping[str, Any] = {
    "ADDONS": sides.ADDED["ADDONS"],
    "AUTOTHROTTLE_ENABLED": True,
    "AUTOTHROTTLE_START_DELAY": 30,
    "BIGCRAWL_ALLOW_PRIVATE_ADDRESSES": True,
    "BIGCRAWL_CRAWL": "downloads-alone",
    "BIGCRAWL_PARTITIONS": 4,
    "BIGCRAWL_SERVER_DELAY": 0,
    "DOWNLOAD_DELAY": DELAY_S,
    "ROBOTSTXT_OBEY": False,
}

Pair = tuple["Seen", "Seen"]
"""Stock Scrapy's side, and bigcrawl's."""


@pytest.fixture(scope="session")
def new_origin(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Origin]:
    """Make an origin of all rows on addresses of its own."""
    certificate = tmp_path_factory.mktemp("tls") / "all.pem"
    write_certificate(certificate, *(f"{net}.0.3" for net in (STOCK, OURS, ALONE)))
    everything = (*tables.ALL, *tables.SURROUNDED, *tables.HANDLED, *tables.DOCUMENTED)
    answers = {case.name: case.answers for case in everything}
    return lambda net: Origin(answers, certificate, net)


@pytest.fixture(scope="session")
def origins(new_origin: Callable[[str], Origin]) -> Iterator[tuple[Origin, Origin]]:
    """One for each side, so that both can run at a time."""
    with new_origin(STOCK) as one, new_origin(OURS) as other:
        yield one, other


@pytest.fixture(scope="session")
def both(
    origins: tuple[Origin, Origin], tmp_path_factory: pytest.TempPathFactory, redis_url: str
) -> Callable[..., Pair]:
    """Run a project on stock Scrapy and with bigcrawl's add-on, both at the same time."""

    def run_both(
        name: str, cases: str, settings: Mapping[str, Any], environment: Mapping[str, str] | None = None
    ) -> Pair:
        directory = tmp_path_factory.mktemp(name)
        added = {**sides.ADDED, "BIGCRAWL_REDIS_URL": redis_url, "BIGCRAWL_CRAWL": f"downloads-{name}"}
        with ThreadPoolExecutor(1) as beside:
            stock = beside.submit(sides.run, origins[0], directory / "stock", cases, settings, environment)
            ours = sides.run(origins[1], directory / "ours", cases, {**added, **settings}, environment)
            return stock.result(), ours

    return run_both


@pytest.fixture(scope="session")
def bare(both: Callable[..., Pair]) -> Pair:
    """A project without components of its own."""
    return both("bare", "CASES", {})


@pytest.fixture(scope="session")
def watched(both: Callable[..., Pair]) -> Pair:
    """A project with downloader middlewares and signal handlers."""
    return both("watched", "ALL", WATCHED_SETTINGS)


@pytest.fixture(scope="session")
def surrounded(both: Callable[..., Pair]) -> Pair:
    """A project with other settings, on a machine whose environment names a proxy."""
    environment = {"http_proxy": "{proxy}", "https_proxy": "{proxy}", "no_proxy": "{net}.0.1,{net}.0.5"}
    return both("surrounded", "SURROUNDED", SURROUNDED_SETTINGS, environment)


@pytest.fixture(scope="session")
def handled(both: Callable[..., Pair]) -> Pair:
    """A project with a handler of its own for http and Scrapy's on aiohttp for https."""
    return both("handled", "HANDLED", HANDLED_SETTINGS)


@pytest.fixture(scope="session")
def handled_otherwise(both: Callable[..., Pair]) -> Pair:
    """A project with Scrapy's handler on aiohttp for http and the one for HTTP/2 for https."""
    return both("handled-otherwise", "HANDLED", HANDLED_OTHERWISE_SETTINGS)


@pytest.fixture(scope="session", autouse=True)
def begun(
    new_origin: Callable[[str], Origin], tmp_path_factory: pytest.TempPathFactory, redis_url: str
) -> Iterator[Future[Seen]]:
    """The run with bigcrawl alone: it rests for seconds, so it begins with the first test and is looked at last."""
    directory = tmp_path_factory.mktemp("alone") / "ours"
    settings = {**ALONE_SETTINGS, "BIGCRAWL_REDIS_URL": redis_url}
    with new_origin(ALONE) as origin, ThreadPoolExecutor(1) as beside:
        yield beside.submit(sides.run, origin, directory, "DOCUMENTED", settings)


@pytest.fixture(scope="session")
def alone(begun: Future[Seen]) -> Seen:
    """A project that sets what the add-on takes over, and that leaves the add-on's own settings alone."""
    return begun.result()
