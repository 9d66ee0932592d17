"""A crawler that does one thing wrong against a real server, and the checker that tells from the log what it was."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl_simweb.basics.answer import Answer, Fault
from bigcrawl_simweb.check.checker import CheckRules, Report, check_exchanges
from bigcrawl_simweb.check.findings import HEADINGS
from bigcrawl_simweb.serve.access_log import read_exchanges
from tests.support.crawling.rude_crawler import RudeCrawler, Rudeness

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tests.annexes.simweb.conftest import Served

# Two hosts of one PLD on two servers, and a host of another PLD at the first of them.
A, B, C = "a.one.test", "b.one.test", "c.two.test"
ADDRESSES = {A: "127.16.0.1", B: "127.16.0.2", C: "127.16.0.1"}
ROBOTS = b"User-agent: *\nDisallow: /private/\n"
SLOW_MS = 100
SLOW_FOR_ANOTHER_MS = 1_000  # time for another request meanwhile, on a busy machine too
ENDLESS_MAX = 2

# Of each host: the pages that links lead to, with their status, in the order in which they are linked.
PAGES = {
    A: {"/": 200, "/page.html": 200, "/flaky": 500},
    B: {"/": 200, "/slow.html": 200, "/page.html": 200},
    C: {"/": 200, "/cut.html": 200, "/gone.html": 404},
}


@dataclass
class SmallWeb:
    """Three hosts by name with a few pages each, everything on them that can be done wrong; all links on "/".

    Attributes:
        busy_s: for how long a page of host C, the last of its links, asks to be left alone; 0 if there is none.
        slow_ms: how long host B's slow page takes.
    """

    busy_s: int = 0
    slow_ms: int = SLOW_MS

    def addresses(self) -> Iterator[str]:
        return iter(sorted(set(ADDRESSES.values())))

    def address_of(self, name: str) -> str | None:
        return ADDRESSES.get(name)

    def answer(
        self, host: str, target: str, port: int, *, at_ms: int = 0, conditions: Mapping[str, str] | None = None
    ) -> Answer:
        if target == "/robots.txt":
            return Answer(200, (("Content-Type", "text/plain"),), ROBOTS)
        if target.startswith("/calendar/"):
            return self._page(f'<a href="/calendar/{int(target.rpartition("/")[2]) + 1}">next</a>')
        if target == "/busy.html":
            return Answer(429, (("Retry-After", str(self.busy_s)),), b"later")
        if target not in PAGES[host]:
            return self._page("") if target in ("/private/x.html", "/aside.html") else Answer(404)
        if target == "/":
            return self._page(self._menu(host, port))
        fault = Fault.CUT if target == "/cut.html" else Fault.NONE
        delay_ms = self.slow_ms if target == "/slow.html" else 0
        return replace(self._page(""), status=PAGES[host][target], delay_ms=delay_ms, fault=fault, fault_at=4)

    def expected(self, port: int) -> dict[str, int]:
        urls = {f"http://{host}:{port}{target}": status for host in PAGES for target, status in PAGES[host].items()}
        return urls | ({f"http://{C}:{port}/busy.html": 429} if self.busy_s else {})

    def _menu(self, host: str, port: int) -> str:
        targets = [
            *PAGES[host],
            "/calendar/1",
            "/private/x.html",
            *(["/busy.html"] if self.busy_s and host == C else []),
        ]
        links = [f'<a href="{target}">{target}</a>' for target in targets]
        links += [f'<a href="http://{other}:{port}/">{other}</a>' for other in PAGES]
        return "\n".join([*links, '<a rel="external nofollow" href="/aside.html">aside</a>'])

    def _page(self, links: str) -> Answer:
        return Answer(200, (("Content-Type", "text/html"),), f"<html><body>{links}</body></html>".encode())


def rules_for(web: SmallWeb, port: int) -> CheckRules:
    return CheckRules(
        expected=web.expected(port),
        port=port,
        host_delay_ms=25,
        pld_of=lambda host: host.partition(".")[2],
        pld_delay_ms=15,
        server_delay_ms=5,
        retries=1,
        retry_after_max_ms=60_000,
        allows=lambda host, target: not target.startswith("/private/"),
        robots_period_ms=10_000,
        is_endless=lambda host, target: target.startswith("/calendar/"),
        endless_max=ENDLESS_MAX,
        nofollow={f"http://{host}:{port}/aside.html" for host in PAGES},
    )


# Who is rude to a host is so to its PLD; what cannot but be broken with the rule in question is no rule here.
ALTERED: dict[Rudeness, dict[str, Any]] = {
    Rudeness.TWO_AT_ONCE: {"pld_of": None, "endless_max": ENDLESS_MAX // 2},
    # So long that a busy machine does not keep it by chance.
    Rudeness.NO_HOST_DELAY: {"pld_of": None, "endless_max": ENDLESS_MAX // 2, "host_delay_ms": 200},
    Rudeness.NO_PLD_DELAY: {"pld_delay_ms": 200},
    # Host A still has pages when host B comes to its slow one, however much a busy machine delays one of them.
    Rudeness.TWO_AT_ONCE_AT_A_PLD: {"pld_delay_ms": 0, "host_delay_ms": 200},
    # Longer than a host waits by itself: two requests in a row are too close, whichever they are.
    Rudeness.NO_SERVER_GAP: {"server_delay_ms": 100},
    Rudeness.ROBOTS_TXT_ONCE_AND_FOR_ALL: {"robots_max_age_ms": 100},
}


def crawled(served: Served, web: SmallWeb, rudeness: Rudeness | None) -> Report:
    """The report of a crawl, from one seed."""
    rules = rules_for(web, served.port)
    if rudeness in ALTERED:
        rules = replace(rules, **ALTERED[rudeness])
    RudeCrawler(rules, ADDRESSES.__getitem__, rudeness).crawl([f"http://{A}:{served.port}/"])
    served.stop()
    return check_exchanges(read_exchanges(served.log), rules)


def test_polite_crawl_keeps_every_rule(serve: Callable[..., Served]):
    """What all the others do but for one thing is complete, without repetition, and polite."""
    web = SmallWeb(busy_s=1)
    report = crawled(serve(web), web, None)
    assert report.ok, str(report)
    assert (report.coverage, report.overlap) == (1.0, 0)
    # Each page once, and again the one that fails, the one that is cut and the one that is busy; two days a PLD.
    assert report.requests == 3 + 10 + 3 + 2 * ENDLESS_MAX
    assert report.robots_requests == report.hosts == 3
    assert report.statuses == ((200, 15), (404, 1), (429, 2), (500, 2))
    assert report.faults == (("cut", 2),)


@pytest.mark.parametrize("rudeness", Rudeness)
def test_rude_crawl_is_found_out(serve: Callable[..., Served], rudeness: Rudeness):
    """One rudeness gives findings of one kind, the one that it is."""
    is_beside_a_slow_page = rudeness in (Rudeness.TWO_AT_ONCE, Rudeness.TWO_AT_ONCE_AT_A_PLD)
    web = SmallWeb(
        # So long that a busy machine does not keep it by chance.
        busy_s=30 if rudeness is Rudeness.IGNORES_RETRY_AFTER else 0,
        slow_ms=SLOW_FOR_ANOTHER_MS if is_beside_a_slow_page else SLOW_MS,
    )
    report = crawled(serve(web), web, rudeness)
    assert report.kinds == {rudeness.value}, str(report)
    assert ".test" in str(getattr(report, rudeness.value)[0])


def test_every_kind_of_finding_has_its_rudeness():
    """No finding is there that a real crawl has not shown."""
    assert {rudeness.value for rudeness in Rudeness} == HEADINGS.keys()
