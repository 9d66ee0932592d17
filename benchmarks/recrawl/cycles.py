"""A crawl that visits every page of a web twice, and the bytes of bodies that the server sent for it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bigcrawl_simweb.basics.exchange import ROBOTS_TARGET
from tests.support.crawling.crawls import Crawl, SimulatedWeb

if TYPE_CHECKING:
    from pathlib import Path

FEATURES: Final = "validators"
SETTINGS: Final[dict[str, Any]] = {
    "BIGCRAWL_HOST_DELAY": 0,
    "BIGCRAWL_PARTITIONS": 8,
    "BIGCRAWL_BUDGET_POLICY": "none",
    "BIGCRAWL_WARC_DIR": "",
    "BIGCRAWL_REVISIT_SECONDS_MIN": 1,
    "TELNETCONSOLE_ENABLED": False,
}
VISITS: Final = 2
WAIT_S: Final = 120  # the first cycle is about over when the second begins


class Cycles(NamedTuple):
    """What two cycles cost: the bytes of first bodies, those of all later ones, and how many pages had both visits."""

    first_bytes: int
    later_bytes: int
    pages: int
    visited_twice: int


def cycles_of(directory: Path, hosts: int, pages: int) -> Cycles:
    """Crawl a web of unchanged pages twice through."""
    with SimulatedWeb(directory / "web", hosts=hosts, pages=pages, features=FEATURES) as web:
        arguments = {"policy": "periodic", "every": str(WAIT_S), "visits": str(VISITS)}
        with Crawl(directory / "crawl", web.seeds, SETTINGS, arguments=arguments, spider="recrawl") as crawl:
            assert crawl.run(timeout_s=3_600) == 0, crawl.log.read_text()[-2_000:]
        visits: Counter[tuple[str, str]] = Counter()
        first = second = 0
        for each in sorted(web.exchanges(), key=lambda exchange: exchange.start_ms):
            target = (each.host, each.target)
            if each.target == ROBOTS_TARGET or each.status not in (200, 304):
                continue
            visits[target] += 1
            if each.status == 200:
                answer = web.web.answer(*target, web.saved.port, at_ms=each.start_ms)
                sent = len(answer.body)
                first, second = (first + sent, second) if visits[target] == 1 else (first, second + sent)
        return Cycles(first, second, len(visits), sum(count == VISITS for count in visits.values()))
