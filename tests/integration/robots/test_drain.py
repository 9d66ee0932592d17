"""Many queued URLs that robots.txt forbids: gone in seconds, whatever the host's delay, each counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.integration.robots.origin import Answer, Origin
from tests.integration.robots.test_conformance import SETTINGS, told
from tests.support.crawling.crawls import Crawl
from tests.support.running.processes import no_strays_below

if TYPE_CHECKING:
    from pathlib import Path

FORBIDDEN = 10_000
DELAY_S = 3
RUN_S = 600  # on a machine however busy; one by one at the host's delay they would take eight hours


def test_forbidden_urls_of_a_host_drain_in_seconds(tmp_path: Path) -> None:
    """Ten thousand on one host beside two open pages; and the delay between those two is kept.

    How few calls it takes is counted by tests/unit/scheduler/node/test_forbidden_sweep.py.
    """
    with no_strays_below(tmp_path), Origin(tmp_path) as origin:
        host = origin.listen(0)
        host.answers = {"/robots.txt": (Answer(200, b"User-agent: *\nDisallow: /no\n"),)}
        paths = ["/ok1", *(f"/no/{number}" for number in range(FORBIDDEN)), "/ok2"]
        settings = {**SETTINGS, "BIGCRAWL_HOST_DELAY": DELAY_S}
        with Crawl(tmp_path / "crawl", [host.origin + path for path in paths], settings) as crawl:
            assert crawl.run(RUN_S) == 0
            log = crawl.log.read_text()
    assert host.asked == ["/robots.txt", "/ok1", "/ok2"]
    assert told(log, "forbidden") == FORBIDDEN
    assert told(log, "URLs seen") == len(paths)
    seconds = float(log.partition("duration of this run")[2].split()[0])
    assert seconds >= 2 * DELAY_S
