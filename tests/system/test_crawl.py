"""The main job on real pages: Debian's documentation from a real nginx, complete, once, polite, kill or no kill."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from fastwarc.warc import ArchiveIterator, WarcRecordType

from bigcrawl_simweb.check.checker import CheckRules, check_exchanges
from tests.support.crawling.verdicts import pause, warc_files, without_untold_gaps
from tests.support.running.processes import no_strays_below
from tests.system.crawls import DELAY_MS, agent_of, crawl_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from bigcrawl_simweb.check.checker import Report
    from tests.support.crawling.crawls import Crawl
    from tests.system.closure import Closure
    from tests.system.nginx import LoggedRequest, NginxSites

pytestmark = [pytest.mark.system, pytest.mark.timeout(1200)]

KILLS = int(os.environ.get("BIGCRAWL_TEST_KILLS", "6"))  # `make test-hostile`: 20
# All that are large, and some of the handbook's: what dies with a node is the same for more of them.
KILLED_SITES = 12
CRAWL_DELAYS_MS = {"handbook-de-DE": 1_000}


def statuses(served: NginxSites, closure: Closure, sites: int | None = None) -> dict[str, int]:
    """What the closure found on the first `sites`, or all."""
    addresses = {site.address for site in served.sites[:sites]}
    return {url: status for url, status in closure.statuses.items() if urlsplit(url).hostname in addresses}


def hold(served: NginxSites, closure: Closure, requests: list[LoggedRequest], expected: dict[str, int]) -> Report:
    """Hold a crawl's part of nginx's log to what is expected of it, and to politeness."""
    forbidden = {(urlsplit(url).hostname, url.partition(f":{served.port}")[2]) for url in closure.forbidden}
    delays = {site.address: CRAWL_DELAYS_MS[site.name] for site in served.sites if site.name in CRAWL_DELAYS_MS}
    return check_exchanges(
        [request.as_exchange() for request in requests],
        CheckRules(
            expected=expected,
            port=served.port,
            host_delay_ms=DELAY_MS,
            host_delays_ms=delays,
            allows=lambda host, target: (host, target) not in forbidden,
        ),
    )


def assert_polite_and_complete(report: Report) -> None:
    assert not report.missing, f"{len(report.missing)} lost: {report.missing[:5]}"
    assert not report.unexpected, report.unexpected[:5]
    assert not report.wrong_status, report.wrong_status[:5]
    assert not report.concurrent, report.concurrent[:3]
    assert not report.host_too_soon, report.host_too_soon[:3]
    assert not report.disallowed, report.disallowed[:3]
    assert not report.robots_not_first


def stored(directory: Path) -> Counter[str]:
    """URLs of the response records of all WARC files; every file must pass warcio's own check."""
    urls: Counter[str] = Counter()
    files = warc_files(directory)
    subprocess.run(
        [sys.executable, "-m", "warcio.cli", "check", *map(str, files)], check=True, stdout=subprocess.DEVNULL
    )
    for file in files:
        with file.open("rb") as stream:
            # A record whose digest is wrong is left out, and missed by the comparison.
            for record in ArchiveIterator(
                stream, record_types=WarcRecordType.response, parse_http=False, verify_digests=True
            ):
                urls[record.headers["WARC-Target-URI"]] += 1
    return urls


def pages(urls: Iterable[str]) -> Counter[str]:
    return Counter(url for url in urls if not url.endswith("/robots.txt"))


def test_killed_crawl_of_real_pages_loses_nothing(
    tmp_path: Path, served: NginxSites, begun: Crawl, closure: Closure
) -> None:
    """kill -9 at random moments: coverage 1; fetched again is at most what was in process; all WARC files are whole."""
    moments = random.Random(5)
    in_process: Counter[str] = Counter()
    # On a busy machine each start may reach its first page only, and that is not what kills it.
    settings = {"BIGCRAWL_DEATHS_MAX": KILLS, "BIGCRAWL_PARTITIONS": 16}
    with (
        no_strays_below(tmp_path),
        crawl_of(served, tmp_path / "crawl", "killed", sites=KILLED_SITES, **settings) as crawl,
    ):
        for _ in range(KILLS):
            crawl.start()
            crawl.redis().close()  # there from now on; without it nobody could say what was in process
            pause(moments.uniform(1.5, 6.0))
            crawl.kill()
            in_process.update(crawl.taken())
        assert crawl.run(900) == 0
        assert crawl.status()["urls"]["dead"] == 0, crawl.frontier("dead").stdout
    requests = served.requests(agent_of("killed"))
    expected = statuses(served, closure, KILLED_SITES)
    report = without_untold_gaps(hold(served, closure, requests, expected), DELAY_MS)
    assert_polite_and_complete(report)
    over = [again for again in report.refetched if again.times - 1 > in_process[again.url]]
    assert not over, over
    assert set(expected) <= set(stored(tmp_path / "crawl" / "warc"))
    print(f"{KILLS} kills, {in_process.total()} in process, {len(report.refetched)} fetched again")  # noqa: T201


def test_crawl_of_real_pages_is_complete_once_and_polite(begun: Crawl, served: NginxSites, closure: Closure) -> None:
    """What is fetched is what an independent closure says is reachable: coverage 1, overlap 0, politely, stored."""
    assert begun.wait(900) == 0
    requests = served.requests(agent_of("whole"))
    report = hold(served, closure, requests, statuses(served, closure))
    assert_polite_and_complete(report)
    assert not report.refetched
    fetched = Counter(f"http://{request.address}:{served.port}{request.target}" for request in requests)
    assert pages(stored(begun.directory / "warc").elements()) == pages(fetched.elements())
