"""A crawl whose pages kill its process, under somebody who starts it again each time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.crawling.plain_project import NotedSite
from tests.support.crawling.poison import DEATHS_MAX, IN_PROCESS_MAX, SETTINGS, PoisonedCrawl, urls_of, visits_of
from tests.support.running.processes import no_strays_below, wait_until

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.fault, pytest.mark.timeout(1200)]


def test_crawl_gets_past_urls_that_kill_hang_and_abort(tmp_path: Path) -> None:
    """Under a supervisor it ends: everything fetched, and what kills is a dead letter after three deaths of its own."""
    with no_strays_below(tmp_path), NotedSite() as site:
        urls = urls_of(site, "kill", "loop", "abort")
        poison = sorted(url for url in urls if "page" not in url)
        with PoisonedCrawl(tmp_path / "crawl", urls, dict(SETTINGS)) as crawl:
            starts_again = crawl.supervise(len(poison) * DEATHS_MAX + 1, timeout_s=300)
            visits = visits_of(site)
            assert set(visits) == set(urls), "everything was fetched"
            assert crawl.dead() == poison
            others = DEATHS_MAX - 1  # deaths of others at which it was in process; from then on it is tried alone
            assert max(visits[url] for url in poison) <= others + DEATHS_MAX
            assert visits.total() - len(urls) <= starts_again * IN_PROCESS_MAX
            assert crawl.asked("explain", poison[0])["outcome"]["name"] == "dropped:poison"
            assert "3 URLs are dead letters" in crawl.log.read_text()
            logs = "".join((crawl.directory / f"log{start}.txt").read_text() for start in range(1, crawl.starts))
            [loop] = [url for url in poison if url.endswith("loop")]
            assert f"in the page {loop}" in logs, "the watchdog names it"


def test_kills_from_outside_make_no_dead_letters(tmp_path: Path) -> None:
    """Killed again and again, and stopped, a crawl of harmless pages fetches all of them."""
    with no_strays_below(tmp_path), NotedSite() as site:
        urls = urls_of(site)
        with PoisonedCrawl(tmp_path / "crawl", urls, dict(SETTINGS)) as crawl:
            for _ in range(4):
                crawl.start()
                before = site.visits[:]
                wait_until(lambda: len(site.visits) >= len(before) + 20, "pages are fetched", timeout_s=120)  # noqa: B023
                crawl.kill()
            crawl.start()
            wait_until(lambda: len(site.visits) >= len(before) + 40, "pages are fetched", timeout_s=120)
            crawl.terminate()
            assert crawl.wait(300) == 0
            assert crawl.run(180) == 0
            assert set(visits_of(site)) == set(urls)
            assert crawl.dead() == []
