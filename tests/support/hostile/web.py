"""The hostile web: all that simweb has, half of it by name, and what a crawl with everything on is held to.

Spaces without end are in it. The crawl comes to an end because its rules hold what is more than a few URLs of them:
that is what policy allows here, together with robots.txt and nofollow.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from bigcrawl.default_settings import BY_NAME
from bigcrawl.politeness.backoff_policy import FREE_TRIES_MAX
from bigcrawl.url.canonical import host_of
from bigcrawl_simweb.basics.features import ALL, Feature, Naming
from bigcrawl_simweb.check.checker import CheckRules, check_exchanges
from bigcrawl_simweb.check.findings import ShortGap
from tests.support.crawling.everything import (
    NamedCrawl,
    answered_within,
    expected_of,
    faults_at,
    names_resolved,
    serve,
    timed_out,
)
from tests.support.running.processes import no_strays_below

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from bigcrawl_simweb.check.checker import Exchange, Report
    from bigcrawl_simweb.check.findings import OverRetry
    from bigcrawl_simweb.model.expectations import Expected
    from tests.support.crawling.crawls import Crawl, SimulatedWeb

# 350 hosts (`make test-hostile`) have 20,000 URLs that a right crawl comes to see: each kind of robots.txt (35) meets
# ten other hosts, each outage (29) twelve. 36 are what every change has to pass: one of each at least.
HOSTS = int(os.environ.get("BIGCRAWL_TEST_HOSTS", "36"))
PAGES = 20
# A host whose name fails to resolve ends its URLs one by one, a minute each: its crawl has no end to wait for.
FEATURES = ALL - {Feature.NAMES}
URLS_MIN = 55 * HOSTS

DELAY_MS, SERVER_DELAY_MS, RETRIES = 50, 50, 2
# URLs of endless spaces that pass, of each PLD.
ENDLESS_MAX = 15
_ENDLESS = "re:^http://[^/]+/(calendar/|deeper/|shop/|~user-offers)"
_HOUR_MS = 3_600_000
_ANY_NUMBER = 10**9
# How late a request may be on its way: 20 ms are the log's, which has what the kernel says where the server read late;
# the rest is for a crawler that shares two cores with whatever else runs. Starts at one server may come closer to each
# other by so much, but not again and again; and between the end of one exchange of a host and the start of its next one
# nothing is forgiven.
LATE_MS = 100
# How late a server without CPU may notice that a client has left; and when a client leaves at the latest.
NOTICED_MS, TIMEOUT_S = 1_000, 4
FETCH_DEADLINE_S = 8
# Where there is a delay of pay-level domains.
PLD_DELAY_MS = 40 if "BIGCRAWL_PLD_DELAY" in BY_NAME else 0

SETTINGS: dict[str, Any] = {
    "LOG_LEVEL": "DEBUG",  # for `timed_out`
    "BIGCRAWL_HOST_DELAY": DELAY_MS / 1000,
    "BIGCRAWL_SERVER_DELAY": SERVER_DELAY_MS / 1000,
    "BIGCRAWL_PARTITIONS": 16,
    "BIGCRAWL_STEP_SECONDS": 0.5,
    **({"BIGCRAWL_PLD_DELAY": PLD_DELAY_MS / 1000} if PLD_DELAY_MS else {}),
    # More than `slow`, `late` and the slow robots.txt take, less than `dripping`.
    "DOWNLOAD_TIMEOUT": TIMEOUT_S,
    "BIGCRAWL_FETCH_DEADLINE": FETCH_DEADLINE_S,
    "RETRY_TIMES": RETRIES,
    # A day of failures in a minute.
    "BIGCRAWL_BACKOFF": 1,
    "BIGCRAWL_BACKOFF_MAX": 4,
    "BIGCRAWL_HOST_FAILURES_MAX": 6,
    "BIGCRAWL_LAST_FAILURES_MAX": 0,  # no fewer at the end, where a server without CPU is given up for dead
    # Above the 1.5 MB of `large`, below what the bombs and the endless bodies come to.
    "DOWNLOAD_MAXSIZE": 4_000_000,
}


@dataclass(frozen=True)
class HostileWeb:
    """A served web, and what is known of it."""

    served: SimulatedWeb

    @cached_property
    def expected(self) -> dict[str, Expected]:
        """What a correct crawler may see at every URL that it may fetch, spaces without end apart."""
        return expected_of(self.served)

    @cached_property
    def followed(self) -> dict[str, Expected]:
        """The same for one that obeys neither robots.txt nor nofollow."""
        web, port = self.served.web, self.served.saved.port
        return web.expected(port, self.served.seeds, obey_robots=False, obey_nofollow=False)

    def crawl(self, directory: Path) -> NamedCrawl:
        """A crawl of it with everything on."""
        settings = {**SETTINGS, "BIGCRAWL_BUDGET_RULES": json.dumps(self._budget_rules())}
        return NamedCrawl(directory, self.served.seeds, settings)

    def hold(self, may_repeat: Counter[str] | None = None, asleep_ms: tuple[int, int] | None = None) -> Report:
        """Hold the server's log to every rule there is.

        Args:
            may_repeat: what was in process when a node was stopped.
            asleep_ms: from when to when it was: it cannot close its connections then, and others leave its hosts alone
                for the fetch deadline.
        """
        exchanges = [_as_left(each) for each in answered_within(self.served.exchanges(), TIMEOUT_S)]
        if asleep_ms:
            exchanges = [_given_up(each, asleep_ms) for each in exchanges]
        report = check_exchanges(exchanges, self._rules())
        report = replace(
            report,
            server_too_soon=tuple(crowded(exchanges, _server_of, SERVER_DELAY_MS)),
            pld_too_soon=tuple(crowded(exchanges, self._pld_of, PLD_DELAY_MS)),
            # What another host's robots.txt redirects to is no page.
            robots_not_first=tuple(fetch for fetch in report.robots_not_first if "/robots/kind-" not in fetch.url),
        )
        allowed = (may_repeat or Counter()) + timed_out(self.served.directory.parent)
        odd = [x for x in report.refetched if not self._is_retriable(x.url) and x.times - 1 > allowed[x.url]]
        over = [x for x in report.over_retried if x.retries - x.allowed > allowed[x.url]]
        over = [x for x in over if not self._is_sent_again(x)]
        return replace(report, refetched=tuple(odd), over_retried=tuple(over))

    def _rules(self) -> CheckRules:
        web, port = self.served.web, self.served.saved.port
        nofollowing = web.expected(port, self.served.seeds, obey_nofollow=False)
        return CheckRules(
            expected=self.expected,
            port=port,
            host_delay_ms=DELAY_MS,
            host_delays_ms=web.crawl_delays_ms(),
            pld_of=web.pld_of,
            pld_connections=_ANY_NUMBER,
            retries=RETRIES + FREE_TRIES_MAX,
            retry_after_max_ms=_HOUR_MS,
            allows=web.allows,
            is_endless=web.is_endless,
            endless_max=ENDLESS_MAX,
            nofollow=frozenset(nofollowing.keys() - self.expected.keys()),
        )

    def _pld_of(self, each: Exchange) -> str:
        return self.served.web.pld_of(each.host)

    def _is_sent_again(self, retried: OverRetry) -> bool:
        """A request that is lost with the kept connection it went over is sent again, and not counted as a try."""
        return retried.retries <= 2 * retried.allowed + 1 and "reset" in faults_at(self.served, retried.url)

    def _is_retriable(self, url: str) -> bool:
        """Also what the client gave up; the checker, which knows a URL by its log alone, tells of it."""
        expected = self.expected.get(url)
        return expected is not None and expected.retriable

    def _budget_rules(self) -> dict[str, dict[str, int]]:
        return {_ENDLESS: {"pages": ENDLESS_MAX}} | {pld: {"pages": ENDLESS_MAX} for pld in self._farms()}

    def _farms(self) -> set[str]:
        """The PLDs of spam that any host's first page links to."""
        web, port = self.served.web, self.served.saved.port
        hosts = {host_of(url) for seed in self.served.seeds for url in web.leads_to(seed, port)}
        return {web.pld_of(host) for host in hosts if web.is_endless(host, "/")}


def _given_up(each: Exchange, asleep_ms: tuple[int, int]) -> Exchange:
    if not each.start_ms <= asleep_ms[0] < each.end_ms:
        return each
    return replace(each, end_ms=min(each.end_ms, each.start_ms + FETCH_DEADLINE_S * 1000))


def _as_left(each: Exchange) -> Exchange:
    """An exchange that the client ended, as it may have been for the client."""
    noticed_ms = each.busy_until_ms(NOTICED_MS)
    if noticed_ms == each.end_ms:
        return each
    return replace(each, end_ms=max(each.start_ms, min(noticed_ms, each.start_ms + TIMEOUT_S * 1000)))


def crowded(exchanges: Iterable[Exchange], group_of: Callable[[Exchange], str], gap_ms: int) -> Iterator[ShortGap]:
    """Starts in one group, a server or a PLD, that are further ahead of its gaps than a late start explains.

    Had each start been the group's gap after the one before it at least, this is when it would have come.
    """
    due_ms: dict[str, int] = {}
    earlier: dict[str, Exchange] = {}
    for each in sorted(exchanges, key=lambda exchange: exchange.start_ms):
        group = group_of(each)
        start_ms = max(due_ms.get(group, 0), each.start_ms)
        if start_ms - each.start_ms > LATE_MS:
            yield ShortGap(group, earlier[group], each, each.start_ms - earlier[group].start_ms, gap_ms)
        due_ms[group] = start_ms + gap_ms
        earlier[group] = each


def _server_of(each: Exchange) -> str:
    return each.server or each.host


@contextlib.contextmanager
def hostile_web(directory: Path) -> Iterator[HostileWeb]:
    """Serve it, and answer DNS for its names."""
    with (
        no_strays_below(directory),
        serve(directory / "web", hosts=HOSTS, pages=PAGES, features=FEATURES, naming=Naming.BOTH) as served,
        names_resolved(served),
    ):
        yield HostileWeb(served)


def unhandled(crawl: Crawl) -> list[str]:
    """Tracebacks in the crawl's logs, each with the line before it, that tell of more than a fetch that failed.

    Scrapy shows one, too, for a fetch that failed and has no errback: under "Error downloading", and its last line
    names one of Scrapy's own exceptions for what befell it.
    """
    found = []
    for log in crawl.directory.glob("log*.txt"):
        entries = _ENTRY.split(log.read_text(errors="replace"))
        found += [entry for entry in entries if "Traceback" in entry and not _is_failed_fetch(entry)]
    return found


_FAILED = re.compile(r"\[scrapy\.core\.scraper\] (?:DEBUG|ERROR): Error downloading")
_ENTRY = re.compile(r"^(?=\d{4}-\d\d-\d\d \d\d:)", re.MULTILINE)


def _is_failed_fetch(entry: str) -> bool:
    last = entry.rstrip().splitlines()[-1].lstrip()
    return bool(_FAILED.search(entry)) and last.startswith(("scrapy.exceptions.", "twisted.internet.error."))
