"""`python -m benchmarks.short`: what `make bench-short` runs: a small site, crawled from a cold start to the end.

`scrapy crawl` of a site of fifty pages is run in turns by stock Scrapy, by bigcrawl on a Redis that runs, and by
bigcrawl with its embedded server, each in a new interpreter with a new state directory. The site says when it was asked
first. Importing the add-on is compared with importing Scrapy in the same turns. Figures are medians. Options: --help.

All modules have bytecode, as pip leaves them: a first crawl of each side, which does not count, writes it.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.crawl.report import aligned, say
from tests.support.redis_servers.redis_server import PrivateRedis

PAGES: Final = 50
LINKS: Final = 8  # on each page, to those that follow
RUN_S: Final = 120.0  # only a hang takes so long

_SPIDER: Final = """
import time
from pathlib import Path

import scrapy


class SiteSpider(scrapy.Spider):
    name = "site"

    @classmethod
    def update_settings(cls, settings):
        super().update_settings(settings)
        Path("made.txt").write_text(str(time.monotonic()))  # Scrapy is making the crawler

    @classmethod
    def from_crawler(cls, crawler):
        if crawler.settings["ADDONS"]:
            record_join()
        return super().from_crawler(crawler)

    async def start(self):
        yield scrapy.Request({url!r})

    def parse(self, response):
        yield from response.follow_all(css="a")


def record_join():
    from bigcrawl.scheduler.node.node import Node

    start = Node.start

    async def timed(node):
        began_s = time.monotonic()
        await start(node)
        Path("joined.txt").write_text(str(time.monotonic() - began_s))

    Node.start = timed
"""
_COMMON: Final[dict[str, Any]] = {
    "BOT_NAME": "site",
    "SPIDER_MODULES": ["site_spider"],
    "USER_AGENT": "benchbot/1.0 (+http://127.0.0.1/)",
    "ROBOTSTXT_OBEY": True,
    "DOWNLOAD_DELAY": 0,
    "LOG_FILE": "crawl.log",
    # Open ports on a machine that measures.
    "TELNETCONSOLE_ENABLED": False,
    "REMOTE_CONTROL_ENABLED": False,
}
_OURS: Final[dict[str, Any]] = {
    "ADDONS": {"bigcrawl.addon.Addon": 500},
    "BIGCRAWL_HOST_DELAY": 0,
    "BIGCRAWL_SERVER_DELAY": 0,
    "BIGCRAWL_ALLOW_PRIVATE_ADDRESSES": True,
    "BIGCRAWL_STATE_DIR": "state",
    "BIGCRAWL_WARC_DIR": "warc",
}

STOCK: Final = "Scrapy"
REDIS: Final = "bigcrawl, Redis"
EMBEDDED: Final = "bigcrawl, embedded"


class Found(NamedTuple):
    """What one crawl came to, in seconds.

    Attributes:
        first_fetch_s: from the making of the crawler to the site's first request.
        join_s: in which the node starts, claims and opens its partitions; 0 for Scrapy.
        end_s: from the last page to the end of the process.
        all_s: from the start of the process to its end.
        cpu_s: of the process.
    """

    first_fetch_s: float
    join_s: float
    end_s: float
    all_s: float
    cpu_s: float


class Site:
    """A site of `PAGES` pages on a port of its own, and the times at which its pages were asked for."""

    def __init__(self) -> None:
        self.asked_s: list[float] = []
        self.pages: set[str] = set()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/0.html"

    def forget(self) -> None:
        """Begin anew with the next crawl."""
        self.asked_s, self.pages = [], set()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # one packet an answer, or each waits 40 ms for an acknowledgement of its first half

            def do_GET(self) -> None:
                site.asked_s.append(time.monotonic())
                number = self.path[1:].removesuffix(".html")
                is_page = number.isdigit() and int(number) < PAGES
                if is_page:
                    site.pages.add(number)
                self._answer(200 if is_page else 404, _page(int(number)) if is_page else b"not here")

            def _answer(self, status: int, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                self.wfile.flush()

            def log_message(self, *_: object) -> None:
                """Each request is in `asked_s`."""

        return Handler


def _page(number: int) -> bytes:
    links = (f'<a href="/{(number + step) % PAGES}.html">{step}</a>' for step in range(1, LINKS + 1))
    return f"<html><title>{number}</title><body>{'<p>'.join(links)}</body></html>".encode()


def main() -> int:
    """Run all sides in turns; 0 when each bound is kept."""
    options = _parser().parse_args()
    more = dict(option.split("=", 1) for option in options.set)
    with ExitStack() as stack:
        site = Site()
        stack.callback(site.close)
        redis = stack.enter_context(PrivateRedis())
        sides = {STOCK: {}, REDIS: _OURS | {"BIGCRAWL_REDIS_URL": redis.url} | more, EMBEDDED: _OURS | more}
        imports: dict[str, list[float]] = {"scrapy": [], "bigcrawl.addon": []}
        found: dict[str, list[Found]] = {side: [] for side in sides}
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = stack.enter_context(tempfile.TemporaryDirectory())
        for settings in sides.values():
            _crawl(site, settings, None)
            redis.client.flushall()
        for number in range(options.rounds):
            for name, times in _turned(imports, number):
                times.append(_imported_s(name))
            for side, runs in _turned(found, number):
                runs.append(_crawl(site, sides[side], options.keep))
                redis.client.flushall()
    return _judged(imports, found)


def _turned(sides: dict[str, Any], number: int) -> list[tuple[str, Any]]:
    return list(sides.items())[:: 1 if number % 2 == 0 else -1]


def _imported_s(module: str) -> float:
    began_s = time.monotonic()
    subprocess.run([sys.executable, "-c", f"import {module}"], check=True, timeout=RUN_S)
    return time.monotonic() - began_s


def _crawl(site: Site, settings: dict[str, Any], keep: Path | None) -> Found:
    """Crawl the site once, in a new project."""
    directory = Path(tempfile.mkdtemp(prefix="bigcrawl-short-"))
    site.forget()
    try:
        (directory / "scrapy.cfg").write_text("[settings]\ndefault = site_settings\n")
        (directory / "site_spider.py").write_text(_SPIDER.replace("{url!r}", repr(site.url)))
        lines = (f"{name} = {value!r}\n" for name, value in (_COMMON | settings).items())
        (directory / "site_settings.py").write_text("".join(lines))
        before, began_s = _children_cpu_s(), time.monotonic()
        command = [sys.executable, "-m", "scrapy", "crawl", "site"]
        subprocess.run(command, cwd=directory, capture_output=True, check=True, timeout=RUN_S)
        ended_s = time.monotonic()
        made_s = float((directory / "made.txt").read_text())
        joined = directory / "joined.txt"
        join_s = float(joined.read_text()) if joined.exists() else 0.0
        if len(site.pages) != PAGES:
            raise SystemExit(f"{len(site.pages)} of {PAGES} pages were fetched")
        if keep is not None:
            shutil.copytree(directory, keep, dirs_exist_ok=True)
    finally:
        shutil.rmtree(directory)
    first_s, last_s = site.asked_s[0], site.asked_s[-1]
    return Found(first_s - made_s, join_s, ended_s - last_s, ended_s - began_s, _children_cpu_s() - before)


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _judged(imports: dict[str, list[float]], found: dict[str, list[Found]]) -> int:
    medians = {side: Found(*map(statistics.median, zip(*runs, strict=True))) for side, runs in found.items()}
    scrapy_s, addon_s = (statistics.median(times) for times in imports.values())
    bounds = [
        ("importing the add-on, longer than Scrapy", addon_s - scrapy_s, 0.3),
        ("first fetch, Redis", medians[REDIS].first_fetch_s, 0.5),
        ("first fetch, embedded", medians[EMBEDDED].first_fetch_s, 1.0),
        ("node's start, embedded", medians[EMBEDDED].join_s, 0.3),
        ("whole crawl, embedded, longer than Scrapy", medians[EMBEDDED].all_s - medians[STOCK].all_s, 1.0),
    ]
    heads = "side", "first fetch s", "node's start s", "end s", "all s", "CPU s"
    rows = [[side, *(f"{figure:.2f}" for figure in figures)] for side, figures in medians.items()]
    say("", *aligned([heads, *rows]), "", f"import: Scrapy {scrapy_s:.2f} s, the add-on {addon_s:.2f} s", "")
    rows = [[title, f"{value:.2f}", f"{most:.1f}", "" if value <= most else "MISSED"] for title, value, most in bounds]
    say(*aligned([("bound, s", "found", "at most", ""), *rows]))
    return int(any(value > most for _, value, most in bounds))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.short", description=__doc__)
    add = parser.add_argument
    add("--rounds", type=int, default=5, help="default 5")
    add("--set", action="append", default=[], metavar="NAME=VALUE", help="a Scrapy setting for bigcrawl's sides")
    add("--keep", type=Path, help="keep the directory of the last run here")
    return parser


if __name__ == "__main__":
    sys.exit(main())
