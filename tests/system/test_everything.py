"""A crawl of all that the simulated web has: complete, polite, stored whole; and of its spaces without end: bounded."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from bigcrawl.politeness.backoff_policy import FREE_TRIES_MAX
from bigcrawl_simweb.basics.exchange import ABORTED_STATUS
from bigcrawl_simweb.basics.features import ALL, Naming
from bigcrawl_simweb.basics.resources import Kind
from bigcrawl_simweb.exhibits.table import EXHIBITS
from tests.support.crawling.crawls import Crawl
from tests.support.crawling.everything import (
    ENDLESS,
    NamedCrawl,
    answered_within,
    expected_of,
    faults_at,
    hold,
    names_resolved,
    peak_bytes,
    serve,
    slugs_met,
    stored,
    timed_out,
)
from tests.support.running.processes import no_strays_below, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from bigcrawl_simweb.check.checker import Report
    from tests.support.crawling.crawls import SimulatedWeb

pytestmark = [pytest.mark.system, pytest.mark.timeout(900)]

# Each kind of robots.txt (35) and of outage (29), four of each exhibit.
HOSTS, PAGES = 36, 6
DELAY_MS, RETRIES, TIMEOUT_S = 50, 2, 4
# Retries that the server sees at most where each try goes over a kept connection and is sent again.
SENT_AGAIN_MAX = 2 * (RETRIES + FREE_TRIES_MAX) + 1
SETTINGS: dict[str, Any] = {
    "LOG_LEVEL": "DEBUG",  # for `timed_out`
    "BIGCRAWL_HOST_DELAY": DELAY_MS / 1000,
    "BIGCRAWL_PARTITIONS": 16,
    "BIGCRAWL_STEP_SECONDS": 0.5,
    # More than `slow`, `late` and the slow robots.txt take, less than `dripping`.
    "DOWNLOAD_TIMEOUT": TIMEOUT_S,
    "BIGCRAWL_FETCH_DEADLINE": 8,
    "RETRY_TIMES": RETRIES,
    # Storms last three or four seconds.
    "BIGCRAWL_BACKOFF": 1,
    "BIGCRAWL_BACKOFF_MAX": 8,
    "BIGCRAWL_TRUNCATE": False,  # what is stored is held to what came whole
    # Above the 1.5 MB of `large`, below what the bombs and the endless bodies come to.
    "DOWNLOAD_MAXSIZE": 4_000_000,
}
# Exhibits whose links are not read, for Scrapy gives up what did not come whole.
NOT_READ = frozenset(
    ("cut", "cut-chunk", "too-little", "stalled", "mute", "reset", "dripping", "endless", "endless-closing")
)
# Of the crawl without end: exchanges before it is stopped; pages in all when it stops by itself.
PAGES_BEFORE, PAGES_MAX = 600, 1_000
IN_PROCESS_MAX = 192
NODE_BYTES_MAX = 300 << 20
# Servers that stall or say nothing do so for far longer than a node may take for its end, on whatever machine.
SILENT_S, STOP_S = 900, 300


class Whole(NamedTuple):
    """A crawl that came to its end."""

    served: SimulatedWeb
    crawl: Crawl
    report: Report


@dataclass(frozen=True)
class Unbuilt:
    """What bigcrawl does not do yet: all findings of a kind have these traits. When it is built, its row fails."""

    kind: str
    trait: Callable[[Whole, Any], object]
    traits: frozenset[object]
    reason: str


UNBUILT = (
    Unbuilt(
        "over_retried",
        lambda whole, retried: (
            "its host's"
            if retried.retries <= RETRIES + FREE_TRIES_MAX
            or (retried.retries <= SENT_AGAIN_MAX and "reset" in faults_at(whole.served, retried.url))
            else retried.url
        ),
        frozenset({"its host's"}),
        "a request that is lost with the kept connection it went over is sent again, and not counted as a try; what "
        "fails while its host is failing is not counted either, up to three times",
    ),
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    """One crawl to its end, for all that is asked of it."""
    work = tmp_path_factory.mktemp("everything")
    with (
        no_strays_below(work),
        serve(work / "web", hosts=HOSTS, pages=PAGES, features=ALL - ENDLESS, naming=Naming.ADDRESS) as served,
        Crawl(work / "crawl", served.seeds, SETTINGS) as crawl,
    ):
        assert crawl.run(800) == 0
        report = hold(served, delay_ms=DELAY_MS, retries=RETRIES, timeout_s=TIMEOUT_S)
        # Retriable is also what the client gave up; the checker, which knows a URL by its log alone, tells of it.
        expected = expected_of(served)
        late = timed_out(work)
        odd = (x for x in report.refetched if not expected[x.url].retriable and x.times - 1 > late[x.url])
        yield Whole(served, crawl, replace(report, refetched=tuple(odd)))


def test_every_kind_of_thing_is_met(whole: Whole) -> None:
    """The crawl asked for every exhibit, and every host for its robots.txt: each kind of it, each outage."""
    assert slugs_met(whole.served, Kind.EXHIBIT) == {row.slug for row in EXHIBITS}
    asked = {exchange.host for exchange in whole.served.exchanges() if exchange.is_robots}
    assert asked == {whole.served.web.name_of(host) for host in range(HOSTS)}


def test_crawl_of_everything_is_complete_and_polite(whole: Whole) -> None:
    """Coverage 1, nothing forbidden, no phantom, no status that may not be; one at a time, each delay kept."""
    assert whole.report.expected is not None
    assert whole.report.expected > 30 * HOSTS
    assert not whole.report.kinds - {row.kind for row in UNBUILT}, str(whole.report)


@pytest.mark.parametrize("row", UNBUILT, ids=lambda row: row.kind)
def test_what_is_not_built_is_all_that_is_wrong(whole: Whole, row: Unbuilt) -> None:
    """Of a kind that has a row, there are the findings that the row tells; a row that is built is to be taken out."""
    found = {row.trait(whole, finding) for finding in getattr(whole.report, row.kind)}
    assert found == row.traits, f"{row.reason}: {whole.report}"


def test_every_page_that_can_be_had_is_read(whole: Whole) -> None:
    """Every coding, charset, reference and broken markup leads on; what did not come whole does not."""
    leading = {row.slug for row in EXHIBITS if row.leads and not row.nofollow}
    assert leading - slugs_met(whole.served, Kind.PROOF) == NOT_READ


def test_everything_is_stored_whole(whole: Whole) -> None:
    """Each answer that came whole is in the WARC files, once and in its own coding; nothing else is."""
    port = whole.served.saved.port
    came = Counter(
        f"http://{exchange.host}:{port}{exchange.target}"
        for exchange in answered_within(whole.served.exchanges(), TIMEOUT_S)
        if not exchange.is_faulty and exchange.status != ABORTED_STATUS
    )
    kept = stored(whole.crawl.directory / "warc")
    assert not kept - came
    assert not came - kept - timed_out(whole.crawl.directory)


def test_spaces_without_end_are_left_when_told(tmp_path: Path) -> None:
    """SIGTERM ends the crawl in time while servers stall or say nothing; the page limit ends its next run."""
    settings = {**SETTINGS, "DOWNLOAD_TIMEOUT": SILENT_S, "BIGCRAWL_FETCH_DEADLINE": SILENT_S}
    with (
        no_strays_below(tmp_path),
        serve(tmp_path / "web", hosts=HOSTS, pages=PAGES, features=ALL, naming=Naming.NAME) as served,
        names_resolved(served),
        NamedCrawl(tmp_path / "crawl", served.seeds, settings) as crawl,
    ):
        process = crawl.start()
        wait_until(lambda: len(served.log.read_bytes().splitlines()) > PAGES_BEFORE, "the crawl is under way", 300)
        assert peak_bytes(process.pid) < NODE_BYTES_MAX
        told_ms = time.time_ns() // 1_000_000
        crawl.terminate()
        assert crawl.wait(STOP_S) == 0
        # Not the page that drips: it comes to its end by itself, on a slow machine before the crawl is told to.
        left = {"silent", "stalled"}
        wait_until(lambda: left <= given_up(served, told_ms), "the server sees the crawl leave")
        crawl.start(BIGCRAWL_MAX_PAGES=PAGES_MAX, DOWNLOAD_TIMEOUT=4, BIGCRAWL_FETCH_DEADLINE=120)
        assert crawl.wait(300) == 0
        assert PAGES_MAX <= pages_told(crawl) <= PAGES_MAX + IN_PROCESS_MAX
        assert any(served.web.is_endless(exchange.host, exchange.target) for exchange in served.exchanges())
        assert stored(tmp_path / "crawl" / "warc")


def given_up(served: SimulatedWeb, since_ms: int) -> set[str]:
    """Faults of the exchanges that ended since then."""
    return {each.fault for each in served.exchanges() if each.end_ms >= since_ms}


def pages_told(crawl: Crawl) -> int:
    """The pages of the whole crawl, by its summary."""
    return int(crawl.log.read_text().partition("\npages (any status)")[2].split()[0].replace(",", ""))
