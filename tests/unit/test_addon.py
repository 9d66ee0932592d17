"""What the add-on installs: with libcurl and uvloop, without them, and beside what a project has chosen itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import requests
from scrapy import Request, Spider
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares import cookies
from scrapy.extensions.telnet import TelnetConsole
from scrapy.extensions.throttle import AutoThrottle
from scrapy.http import Response
from scrapy.settings import Settings
from scrapy.utils.misc import load_object
from scrapy.utils.python import without_none_values
from tldextract import TLDExtract

from bigcrawl import __version__
from bigcrawl.addon import Addon
from bigcrawl.extensions.progress import Progress
from bigcrawl.installing import DASHBOARD, METRICS
from bigcrawl.scheduler.scheduler import Scheduler
from tests.support.servers.serving import at_work
from tests.unit.scheduler.world import QUIET

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy.settings import BaseSettings

OURS = "bigcrawl.downloads.http.HttpDownloadHandler"
REPOSITORY = Path(__file__).parents[2]

# Runs one spider on an installation that lacks some packages: they are not found, whoever looks for them.
CRAWL = """
import asyncio, importlib.machinery, json, sys

lacking, url, settings = json.loads(sys.argv[1])

class Finder(importlib.machinery.PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in lacking else super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(importlib.machinery.PathFinder)] = Finder

from scrapy import Request, Spider
from scrapy.crawler import AsyncCrawlerProcess

class One(Spider):
    name = "one"

    async def start(self):
        yield Request(url)

    def parse(self, response):
        handlers = self.crawler.engine.downloader.handlers
        loop = type(asyncio.get_running_loop())
        told = [response.text, type(handlers._get_handler("http")).__name__, loop.__module__.partition(".")[0]]
        told += [name for name in lacking if name in sys.modules]
        print(json.dumps(told))

process = AsyncCrawlerProcess(settings)
process.crawl(One)
process.start()
"""


class One(Spider):
    name = "one"


class Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", "4")
        self.end_headers()
        self.wfile.write(b"page")

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def page() -> Iterator[str]:
    with at_work(HTTPServer(("127.0.0.1", 0), Page)) as server:
        yield f"http://127.0.0.1:{server.server_port}/"


def installed(project: dict[str, Any] | None = None, common: dict[str, Any] = QUIET) -> BaseSettings:
    """A project's settings as they are when the add-on has been there."""
    crawler = Crawler(One, Settings({**common, **(project or {})}, priority="project"))
    crawler.spider = One()
    Addon.update_pre_crawler_settings(crawler.settings)
    Addon.from_crawler(crawler).update_settings(crawler.settings)
    return crawler.settings


@pytest.mark.long("starts cold, without what a crawl has; whose handlers are taken is asked here, too")
def test_crawl_runs_without_libcurl_and_uvloop(redis_url: str, crawl_name: str, tmp_path: Path) -> None:
    """Both make a crawl faster and are not needed for it: Scrapy's own handler and loop take their places."""
    settings = {
        **QUIET,
        "ADDONS": {"bigcrawl.addon.Addon": 500},
        "BIGCRAWL_CRAWL": crawl_name,
        "BIGCRAWL_REDIS_URL": redis_url,
        "BIGCRAWL_STATE_DIR": str(tmp_path),
        "TELNETCONSOLE_ENABLED": False,
    }
    with page() as url:
        told = subprocess.run(
            [sys.executable, "-c", CRAWL, json.dumps([["pycurl", "uvloop"], url, settings])],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    lines = [line for line in told.stdout.splitlines() if line.startswith("[")]  # a summary stands beside it
    assert lines, told.stderr
    assert [json.loads(line) for line in lines] == [["page", HTTP11DownloadHandler.__name__, "asyncio"]]


def test_handlers_of_the_project_win() -> None:
    """One that is named stays, one that is switched off stays off; the other scheme is ours."""
    own = "tests.integration.downloads.project.handlers.Own"
    assert installed()["DOWNLOAD_HANDLERS"] == {"http": OURS, "https": OURS}
    assert installed({"DOWNLOAD_HANDLERS": {"http": own}})["DOWNLOAD_HANDLERS"] == {"http": own, "https": OURS}
    assert installed({"DOWNLOAD_HANDLERS": {"https": None}})["DOWNLOAD_HANDLERS"] == {"http": OURS, "https": None}
    both = {"http": own, "https": own, "s3": None}
    assert installed({"DOWNLOAD_HANDLERS": both})["DOWNLOAD_HANDLERS"] == both


def test_cookies_need_no_download(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Scrapy would fetch the list of public suffixes when the first cookie of a domain comes, within the event loop."""
    asked: list[str] = []

    def refuse(_session: requests.Session, request: requests.PreparedRequest, **_: object) -> None:
        asked.append(str(request.url))
        raise requests.ConnectionError

    monkeypatch.setattr(requests.Session, "send", refuse)
    scrapys = TLDExtract(cache_dir=str(tmp_path), include_psl_private_domains=True)
    monkeypatch.setattr(cookies, "_split_domain", scrapys)
    installed()
    jars = cookies.CookiesMiddleware.from_crawler(Crawler(One))
    request = Request("http://www.shop.co.uk/")
    headers = {"Set-Cookie": ["own=1; Domain=shop.co.uk", "all=1; Domain=co.uk"]}
    jars.process_response(request, Response(request.url, headers=headers))
    jars.process_request(request)
    assert request.headers["Cookie"] == b"own=1"
    assert not asked
    assert not list(tmp_path.iterdir())


class OwnThrottle(AutoThrottle):
    """A project's."""


def test_no_throttle_of_scrapys_is_loaded() -> None:
    """Not even one that the project derived; the setting stays as it is, for those who read it."""
    own = f"{__name__}.OwnThrottle"
    settings = installed({"AUTOTHROTTLE_ENABLED": True, "EXTENSIONS": {own: 10}})
    assert settings.getbool("AUTOTHROTTLE_ENABLED")
    loaded = {
        load_object(name) for name in without_none_values(settings.get_component_priority_dict_with_base("EXTENSIONS"))
    }
    assert not loaded & {AutoThrottle, OwnThrottle}
    assert {TelnetConsole, Progress} <= loaded


def test_settings_of_the_project_win() -> None:
    """But for those that would break a promise."""
    project = {"CONCURRENT_REQUESTS": 7, "ASYNCIO_EVENT_LOOP": "asyncio.SelectorEventLoop", "DOWNLOAD_DELAY": 3}
    settings = installed(project)
    assert settings.getint("CONCURRENT_REQUESTS") == 7
    assert settings["ASYNCIO_EVENT_LOOP"] == "asyncio.SelectorEventLoop"
    assert (settings.getfloat("DOWNLOAD_DELAY"), installed()["ASYNCIO_EVENT_LOOP"]) == (3, "uvloop.Loop")


@pytest.mark.parametrize(
    ("stock", "ours", "place"),
    [
        ("httpcompression.HttpCompressionMiddleware", "compression.CompressionMiddleware", 590),
        ("redirect.MetaRefreshMiddleware", "redirects.MetaRefreshMiddleware", 580),
        ("redirect.RedirectMiddleware", "redirects.RedirectMiddleware", 600),
    ],
)
def test_hostile_answers_meet_our_middlewares(stock: str, ours: str, place: int) -> None:
    """In the places of Scrapy's; unless the project has named that one, or one of its own."""
    theirs = load_object(f"scrapy.downloadermiddlewares.{stock}")

    def chain(project: dict[str, Any]) -> dict[type, int]:
        found = installed({"DOWNLOADER_MIDDLEWARES": project})
        merged = found.get_component_priority_dict_with_base("DOWNLOADER_MIDDLEWARES")
        return {cls: at for one, at in merged.items() if issubclass(cls := load_object(one), theirs)}

    assert chain({}) == {load_object(f"bigcrawl.middlewares.{ours}"): place}
    assert chain({theirs: 570}) == {theirs: 570}
    assert chain({theirs: None}) == {}


def test_body_may_have_some_megabytes() -> None:
    """Scrapy's default is a GiB, times the fetches at a time; a project says otherwise if it has the memory."""
    assert installed().getint("DOWNLOAD_MAXSIZE") == 16 << 20
    assert installed({"DOWNLOAD_MAXSIZE": 5}).getint("DOWNLOAD_MAXSIZE") == 5


MAIL = "me@uni-somewhere.de"


def test_servers_are_told_whom_to_reach() -> None:
    """In the user agent, whatever it was, and a mail address in each request; what a project says is not said twice."""
    agent = installed({"BIGCRAWL_CONTACT": MAIL})["USER_AGENT"]
    assert agent == f"bigcrawl/{__version__} (+{MAIL})"
    assert installed({"BIGCRAWL_CONTACT": MAIL, "USER_AGENT": "mybot"})["USER_AGENT"] == f"mybot (+{MAIL})"
    own = f"mybot ({MAIL})"
    found = installed({"USER_AGENT": own})
    assert found["USER_AGENT"] == own
    assert found["DEFAULT_REQUEST_HEADERS"]["From"] == MAIL
    assert "Accept" in found["DEFAULT_REQUEST_HEADERS"]
    assert "From" not in installed()["DEFAULT_REQUEST_HEADERS"]
    assert "From" not in installed({"BIGCRAWL_CONTACT": "https://uni-somewhere.de/"})["DEFAULT_REQUEST_HEADERS"]
    others = {"from": "others@uni-somewhere.de"}
    assert installed({"BIGCRAWL_CONTACT": MAIL, "DEFAULT_REQUEST_HEADERS": others})["DEFAULT_REQUEST_HEADERS"] == others


def test_contact_is_told_over_the_command_line_too() -> None:
    """A user agent given there has no contact either."""
    crawler = Crawler(One, Settings({**QUIET, "BIGCRAWL_CONTACT": MAIL}, priority="project"))
    crawler.settings.set("USER_AGENT", "mybot", "cmdline")
    crawler.spider = One()
    Addon.from_crawler(crawler).update_settings(crawler.settings)
    assert crawler.settings["USER_AGENT"] == f"mybot (+{MAIL})"


SWITCHED_ON = (
    *("content.near_copies", "downloads.odd_servers", "extensions.feeds", "features.revisits.page"),
    *("features.votes.page", "middlewares.page_filter", "pipelines.page_shipping", "redisdb.sentinels", "redisdb.tls"),
    *("scheduler.crawl.fingerprints", "scheduler.crawl.stored_record", "scheduler.owner.node_store"),
    *("scheduler.queues.prioritizers", "scheduler.rules.head_rules", "scheduler.rules.link_rules"),
    *("scheduler.rules.page_rules", "scheduler.rules.scope", "views", "warc.recovery"),
)
"""Imported where a setting asks for them, or the first time that they are needed."""


def test_commands_that_make_no_crawler_import_no_frontier() -> None:
    """Each command of a project may import the add-on. Nor does a crawl import what feeds or other handlers need."""
    crawl = "import bigcrawl.installing, bigcrawl.downloads.http"
    for command, unused in (
        ("import bigcrawl.addon", ("bigcrawl.scheduler", "numpy", "redis", "tldextract")),
        (crawl, ("itemadapter", "pydantic", "scrapy.core.downloader.handlers.http11", "aiodns", "tqdm")),
        (crawl, tuple(f"bigcrawl.{name}" for name in ("commands", "page_store", "redisdb.masters", "store"))),
        (crawl, tuple(f"bigcrawl.{name}" for name in SWITCHED_ON)),
    ):
        script = f"{command}; import sys; print([name for name in {unused} if name in sys.modules])"
        told = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
        assert told.stdout == "[]\n"


IMPORTING = """
import gc, sys
from scrapy.settings import Settings
from bigcrawl.addon import Addon
if "off" in sys.argv:
    gc.disable()
for _ in range(2):
    Addon.update_pre_crawler_settings(Settings())
    print(gc.isenabled(), gc.get_freeze_count() > 50_000)
    gc.unfreeze()
names = list(sys.modules)
print(names.index("scrapy.core.downloader.contextfactory") < names.index("bigcrawl.installing"))
"""


@pytest.mark.parametrize("collector", ["on", "off"])
def test_collector_looks_at_no_import(collector: str) -> None:
    """Once: what a process has by a second crawl may become garbage. The collector is as the project has set it."""
    command = [sys.executable, "-c", IMPORTING, collector]
    told = subprocess.run(command, check=True, capture_output=True, text=True)
    is_on = collector == "on"
    assert told.stdout.split("\n")[:3] == [f"{is_on} True", f"{is_on} False", "True"]


def test_metrics_are_loaded_only_if_they_are_on() -> None:
    """Nothing of them is imported otherwise, so that the package they need may be missing."""
    script = (
        "import sys\n"
        "sys.modules['prometheus_client'] = None\n"
        "import bigcrawl.installing\n"
        "assert not any(name.startswith('bigcrawl.metrics') for name in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
    assert not any(METRICS in str(component) for component in installed().getdict("EXTENSIONS"))
    assert load_object(METRICS) in installed({"BIGCRAWL_METRICS": True}).getdict("EXTENSIONS")


def test_dashboard_is_loaded_only_if_it_is_on() -> None:
    assert not any(DASHBOARD in str(component) for component in installed().getdict("EXTENSIONS"))
    assert load_object(DASHBOARD) in installed({"BIGCRAWL_DASHBOARD": True}).getdict("EXTENSIONS")


def test_without_their_package_metrics_are_one_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It says what to install, and nothing is fetched."""
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    settings = installed({"BIGCRAWL_METRICS": True})
    [record] = [record for record in caplog.records if record.levelname == "ERROR"]
    assert record.getMessage().endswith('pip install "bigcrawl[metrics]"')
    assert settings["SCHEDULER"] is not Scheduler
