"""`python -m benchmarks.focused`: how many of the pages that a focused crawl fetches are about its topic.

Serves a topical web (`bigcrawl_simweb.model.topical`), 5 % of whose pages are about bees, and crawls a part of it three
times from the same seeds: breadth-first by the spider `broad`, and by the spider `focused`, which is told three of the
topic's eight words, with BIGCRAWL_LINK_VOTES and without. By the server's log, it prints the harvest rate, the share of
fetched pages that are about the topic, and writes its curve as a page. Promised is twice as much as breadth-first at
10 % fetched, without votes; the exit status is 1 if that was missed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from benchmarks.crawl.report import aligned, say
from bigcrawl_report.document import Document
from bigcrawl_report.html import html_of
from bigcrawl_report.tables import Column, Plot, Section, Table
from bigcrawl_simweb.basics.exchange import ROBOTS_TARGET
from bigcrawl_simweb.model.state import load_web
from bigcrawl_simweb.model.topical import TopicalWeb
from bigcrawl_simweb.serve.access_log import read_log
from tests.support.crawling.crawls import Crawl
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.support.running.processes import spawn

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TOPIC: Final = 0  # bees
TOLD: Final = "bees honey beehive"
PROMISED: Final = 2.0
SEEDS: Final = 20  # a portal of each topic


class Side(NamedTuple):
    """A crawl: the spider, its arguments, and settings of its own."""

    spider: str
    arguments: dict[str, str]
    settings: dict[str, Any]


BASE: Final = "breadth-first"
OURS: Final = "focused"
SIDES: Final = {
    BASE: Side("broad", {}, {}),
    OURS: Side("focused", {"topic": TOLD}, {}),
    "with votes": Side("focused", {"topic": TOLD}, {"BIGCRAWL_LINK_VOTES": 1}),
}
SETTINGS: Final[dict[str, Any]] = {
    "BIGCRAWL_HOST_DELAY": 0,
    "BIGCRAWL_PARTITIONS": 8,
    "BIGCRAWL_HOT_URLS": 1_000,
    "BIGCRAWL_BUDGET_POLICY": "none",
    "BIGCRAWL_WARC_DIR": "",
    "TELNETCONSOLE_ENABLED": False,
}
_MARKS: Final = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0)  # of what is fetched


def main() -> int:
    """Crawl, print a table, write the page."""
    options = _parser().parse_args()
    pages = round(options.share * options.hosts * options.pages)
    with tempfile.TemporaryDirectory(prefix="bigcrawl-focused-") as directory:
        curves = {}
        for name, side in SIDES.items():
            curves[name], about = _crawled(Path(directory) / name.replace(" ", "-"), options, side, pages)
    rows = table_of(curves)
    say(f"{options.hosts * options.pages:,} pages, {about:,} about the topic; {pages:,} fetched from {SEEDS} seeds")
    say(*aligned([["fetched", *curves, "ratio"], *([f"{mark:,}", *map(_shown, found)] for mark, *found in rows)]))
    ratio = rows[-1][-1]
    options.to.parent.mkdir(parents=True, exist_ok=True)
    options.to.write_text(page_of(curves, rows), "utf-8")
    say(f"{ratio:.1f} times as many as breadth-first{'' if ratio >= PROMISED else ': MISSED'}; curve: {options.to}")
    return 0 if ratio >= PROMISED else 1


def harvest(web: TopicalWeb, urls: Sequence[str], topic: int) -> list[int]:
    """Return for each fetched page how many up to it were about the topic."""
    return list(accumulate(web.topic_at(url) == topic for url in urls))


def table_of(curves: dict[str, list[int]]) -> list[tuple[float, ...]]:
    """Return at some marks how many pages were fetched, the harvest rate of each side, and ours by the other's."""
    shortest = min(map(len, curves.values()))
    rows = []
    for mark in (max(1, round(share * shortest)) for share in _MARKS):
        rates = {name: curve[mark - 1] / mark for name, curve in curves.items()}
        rows.append((mark, *rates.values(), rates[OURS] / max(rates[BASE], 1 / mark)))
    return rows


def page_of(curves: dict[str, list[int]], rows: list[tuple[float, ...]]) -> str:
    """Return the page with the table and the curve, in the style of a crawl's report."""
    shortest = min(map(len, curves.values()))
    marks = [round(1 + at * (shortest - 1) / 200) for at in range(201)] if shortest > 200 else range(1, shortest + 1)
    plot = Plot(
        "harvest",
        "Harvest rate",
        list(marks),
        {name: [round(curve[mark - 1] / mark, 4) for mark in marks] for name, curve in curves.items()},
        x_label="pages fetched",
        y_label="share about the topic",
        is_time=False,
    )
    columns = (Column("fetched"), *(Column(name, "share") for name in curves), Column("ratio", "number"))
    table = Table("rates", "Share of fetched pages that are about the topic", columns, rows)
    about = "Focused crawls and a breadth-first one of a simulated web, from the same seeds, by the server's log."
    return html_of(Document("focused", time.time(), False, [Section("harvest", "Harvest", about, [table], [plot])]))


def _crawled(directory: Path, options: argparse.Namespace, side: Side, pages: int) -> tuple[list[int], int]:
    """Return the harvest of one crawl, and how many pages of the web are about the topic.

    Raises:
        RuntimeError: the crawl failed; the message has the end of its log.
    """
    with ExitStack() as stack:
        web, port, log = stack.enter_context(_serving(directory / "web", options))
        redis = stack.enter_context(PrivateRedis())
        settings = {**SETTINGS, **side.settings, "BIGCRAWL_REDIS_URL": redis.url, "BIGCRAWL_MAX_PAGES": pages}
        settings["CONCURRENT_REQUESTS"] = options.concurrency
        seeds = web.seeds(port)[:SEEDS]
        crawl = Crawl(directory / "crawl", seeds, settings, arguments=side.arguments, spider=side.spider)
        stack.enter_context(crawl)
        if crawl.run(options.limit):
            raise RuntimeError(f"the crawl of {side.spider} failed:\n{crawl.log.read_text()[-2000:]}")
        lines = sorted(line for line in read_log(log) if line.target != ROBOTS_TARGET)
    urls = [f"http://{line.host}{line.target}" for line in lines][:pages]
    return harvest(web, urls, TOPIC), web.count(TOPIC)


@contextmanager
def _serving(directory: Path, options: argparse.Namespace) -> Iterator[tuple[TopicalWeb, int, Path]]:
    """Serve the web in a process of its own; yield it, its port and the path of its log."""
    directory.mkdir(parents=True)
    log = directory / "access.log"
    command = [sys.executable, "-m", "bigcrawl_simweb", "serve", "--shape", "topical", "--seed", str(options.seed)]
    command += ["--hosts", str(options.hosts), "--pages-per-host", str(options.pages)]
    process = spawn([*command, "--state", directory, "--log", log], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"simweb ready"), "the web is not served"
        saved = load_web(directory)
        assert saved is not None
        web = saved.web_of_shape()
        assert isinstance(web, TopicalWeb)
        yield web, saved.port, log
    finally:
        process.terminate()
        process.wait()


def _shown(rate: float) -> str:
    return f"{rate:.3f}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.focused", description=__doc__)
    add = parser.add_argument
    add("--hosts", type=int, default=200, help="default 200")
    add("--pages", type=int, default=250, help="of each host; default 250")
    add("--share", type=float, default=0.1, help="of the web that is fetched; default 0.1")
    add("--concurrency", type=int, default=16, help="requests at a time; default 16")
    add("--seed", type=int, default=7, help="of the web; default 7")
    add("--limit", type=float, default=3_600, help="seconds for a crawl; default 3600")
    add("--to", type=Path, default=Path("build/focused.html"), help="the page; default build/focused.html")
    return parser


if __name__ == "__main__":
    sys.exit(main())
