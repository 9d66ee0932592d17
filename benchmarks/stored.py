"""`python -m benchmarks.stored`: how many stored pages a second a spider is given, by one core.

Writes pages of 21 KB with 60 links (`bigcrawl_simweb.model.uniform`) into a WARC file in the order of a breadth-first
crawl, indexes it, and runs spiders over it, each in a process of its own with nothing to connect to: `broad`, which
follows links, and one that is given all pages and makes an item of each. Prints pages by second of CPU, with and
without the process's start, which a run that is given nothing takes alone. Promised are 600 pages a second a core; the
exit status is 1 if that was missed.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import sys
import tempfile
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from benchmarks.crawl.report import say
from bigcrawl.page_index.index_files import index_file
from bigcrawl.warc.records import Exchange
from bigcrawl.warc.segments import SealingOptions, WarcWriter
from bigcrawl_simweb.model.uniform import UniformWeb
from tests.support.running.processes import spawn

if TYPE_CHECKING:
    from collections.abc import Iterator

PROMISED: Final = 600
PORT: Final = 8080
_GIVEN = re.compile(r"(\d+) of (\d+) stored pages were given to the spider in ([0-9.]+) s")


class Measured(NamedTuple):
    """A run: pages, seconds until its end from when the spider was open, and seconds of CPU of its process."""

    pages: int
    seconds: float
    cpu_s: float


def main(words: list[str] | None = None) -> int:
    chosen = _parser().parse_args(words)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        web = UniformWeb(chosen.seed, chosen.hosts)
        (directory / "seeds.txt").write_text("\n".join(web.menus(PORT)))
        path = _written(directory / "warc", web, chosen.pages)
        say(f"{chosen.pages:,} pages in {path.stat().st_size / 1e6:.0f} MB; load {os.getloadavg()[0]:.1f}")
        start = _run(directory, "broad", BIGCRAWL_SOURCE_TIME="2001")
        missed = False
        for spider, settings in (("broad", {}), ("noting", {"BIGCRAWL_SOURCE_PAGES": "all"})):
            found = _run(directory, spider, **settings)
            by_core = found.pages / (found.cpu_s - start.cpu_s)
            missed = missed or by_core < PROMISED
            say(
                f"{spider:8} {found.pages:,} pages: {by_core:,.0f} pages/s a core, {1000 / by_core:.2f} ms a page; "
                f"with the start of {start.cpu_s:.1f} s {found.pages / found.cpu_s:,.0f}; by the clock "
                f"{found.pages / found.seconds:,.0f}"
            )
    return int(missed)


def _written(directory: Path, web: UniformWeb, count: int) -> Path:
    directory.mkdir()
    writer = WarcWriter(directory, "bench", "node", sealing=SealingOptions(64 << 30))
    for exchange in _exchanges(web, count):
        writer.write(exchange)
    writer.close()
    [path] = directory.glob("*.warc.gz")
    index_file(path, ["cdxj"])
    return path


def _exchanges(web: UniformWeb, count: int) -> Iterator[Exchange]:
    seeds = list(web.menus(PORT))
    waiting = deque(enumerate(seeds))
    for at in range(count):
        number, url = waiting.popleft()
        host, _, target = url.removeprefix("http://").partition("/")
        answer = web.answer(host.partition(":")[0], f"/{target}", PORT)
        body = answer.body
        headers = [(b"Content-Type", b"text/html; charset=utf-8"), (b"Content-Length", b"%d" % len(body))]
        notes = {"fetchTimeMs": "12", "depth": "1", "priority": "0"}
        agent = [(b"User-Agent", b"bigcrawl/0.1"), (b"Accept-Encoding", b"gzip, deflate")]
        date_ms = 1_700_000_000_000 + at
        yield Exchange(url, "GET", agent, b"", 200, headers, body, date_ms, ip="127.0.0.1", notes=notes)
        if len(waiting) < count:
            waiting.extend((child, web._url_of_page(child, PORT)) for child in web.children(number))


def _run(directory: Path, spider: str, **settings: object) -> Measured:
    """Run a spider over the pages.

    Raises:
        RuntimeError: it failed; the message has the end of its log.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    log = directory / "log.txt"
    every = {
        "SPIDER_MODULES": "bigcrawl.spiders,tests.support.noting_spiders",
        "BIGCRAWL_SOURCE": directory / "warc",
        "LOG_FILE": log,
        "LOG_FILE_APPEND": False,
        **settings,
    }
    options = [word for key, value in every.items() for word in ("-s", f"{key}={value}")]
    command = [sys.executable, "-m", "scrapy", "crawl", spider, "-a", f"seeds={directory / 'seeds.txt'}", *options]
    process = spawn(command, env={**os.environ, "SCRAPY_SETTINGS_MODULE": "bigcrawl.settings"})
    status = process.wait()
    found = _GIVEN.search(log.read_text())
    if status or found is None:
        raise RuntimeError(f"the run failed:\n{log.read_text()[-2000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Measured(int(found[1]), float(found[3]), cpu_s)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stored", description=__doc__)
    add = parser.add_argument
    add("--hosts", type=int, default=100, help="default 100")
    add("--pages", type=int, default=20_000, help="default 20,000")
    add("--seed", type=int, default=7, help="of the web; default 7")
    return parser


if __name__ == "__main__":
    sys.exit(main())
