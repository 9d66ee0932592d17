"""Parts of the dashboard that only some crawls have, in a real Chromium: many sites, a spider that counts, a sample.

The crawl is that of a node whose engine is the test, so that its figures are known. Debian's packages `chromium` and
`chromium-driver`.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from bigcrawl.views.activity.recent import recent_of
from bigcrawl_sampling.sketch import WalkSketch
from tests.annexes.sampling.test_estimating import WALKS, links_of_web, walks_over
from tests.integration.watching.test_dashboard import port_in
from tests.support.browsing.chromium import chromium, console_errors, resize
from tests.support.browsing.layout import accessibility, layout_faults
from tests.support.crawling.crawls import Crawl
from tests.support.observing import tallies_of
from tests.support.running import warm
from tests.support.running.processes import wait_until
from tests.system.test_dashboard import open_section, shows, text
from tests.unit.scheduler.gates.test_speed import awaited
from tests.unit.scheduler.world import queued, viewed, world

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.unit.scheduler.world import World

pytestmark = pytest.mark.system

SUFFIXES = ("com", "org", "net", "fr")
SITES = 60
SKETCHED = 2_000  # URLs of the web that the walks are over


async def fill(w: World, *, samples: bool) -> None:
    """A node with pages of many sites, whose spider counts."""
    node = w.new_node()
    engine: Any = node.parts.engine
    engine.figures = lambda: {"pages about the topic": [120, 500]}
    if samples:
        sketch = WalkSketch()
        for step in walks_over(links_of_web(Random(7)), WALKS, Random(3)):
            sketch.add(step)
        engine.figures, engine.summary = sketch.figures, sketch.to_json
    await node.arrival.join()
    for url in queued("http://www.site1.com/"):
        node.offer(url)
    await w.turn(node)
    tallies = tallies_of(node)
    for number in range(SITES):
        for _ in range(1 + number):
            name = f"site{number}.{SUFFIXES[number % 4]}"
            tallies.record_page(f"www.{name}", name, "192.0.2.1", 1_000)
    tallies.record_page("192.0.2.7", "192.0.2.7", "192.0.2.7", 1_000)
    await node.parts.observers.send(is_last=True)
    await viewed(w.config, recent_of)
    await node.parts.control.read()
    await node.parts.heartbeat.send()


@contextmanager
def dashboard(w: World, directory: Path) -> Iterator[str]:
    """The address of the dashboard of a crawl, as its command serves it."""
    config = w.config.crawl
    settings = {
        "BIGCRAWL_CRAWL": config.name,
        "BIGCRAWL_STATE_DIR": config.state_dir,
        "BIGCRAWL_REDIS_URL": config.redis_url,
        "BIGCRAWL_LEASE_SECONDS": 600,
        "BIGCRAWL_DASHBOARD_PORT": 0,
    }
    crawl = Crawl(directory, ["http://www.site1.com/"], settings, name=config.name)
    environment = {**os.environ, "SCRAPY_SETTINGS_MODULE": "bigcrawl.settings"}
    said = directory / "said.txt"
    with said.open("wb") as out:
        command = ["scrapy", "frontier", "dashboard", *crawl.options()]
        process = warm.start(command, stdout=out, stderr=out, env=environment)
    try:
        yield f"http://127.0.0.1:{port_in(said)}/"
        process.terminate()
        assert process.wait(300) == 0
    finally:
        process.kill()


def tiles(browser: Any) -> list[Any]:
    found: list[Any] = browser.find_elements(By.CSS_SELECTOR, "#map > *")
    return found


def names(browser: Any) -> list[str]:
    """What a screen reader says of each box."""
    return [tile.accessible_name for tile in tiles(browser)]


@awaited
async def test_boxes_of_sites_are_opened_and_closed_by_keyboard_and_by_pointer(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """A group opens in place, focus goes where the reader is, and what changed is said aloud."""
    async with world(tmp_path, crawl_name, redis_url, lease_seconds=600) as w:
        await fill(w, samples=False)
        with dashboard(w, tmp_path / "dashboard") as url, chromium() as browser:
            resize(browser, 1280)
            browser.get(url)
            open_section(browser, "pages")
            wait_until(lambda: len(tiles(browser)) == len(SUFFIXES) + 1, "sites are grouped")
            # 15 sites of one suffix have 15 * 4 pages more than those of the suffix before.
            assert names(browser)[:2] == [".fr 480, 15 sites", ".net 465, 15 sites"]
            assert names(browser)[-1] == "addresses: 1 pages", "one that is too small to show its text"

            browser.execute_script("document.querySelector('#map-by').focus({preventScroll: true})")
            browser.switch_to.active_element.send_keys(Keys.TAB)
            assert browser.switch_to.active_element.accessible_name.startswith(".fr")
            browser.switch_to.active_element.send_keys(Keys.ENTER)
            wait_until(lambda: len(tiles(browser)) == SITES // len(SUFFIXES), "the group is open")
            assert names(browser)[0] == "site59.fr 60"
            assert browser.switch_to.active_element.accessible_name == "All sites"
            said = browser.execute_script("return document.querySelector('#spoken').textContent")
            assert said == "Sites of .fr as boxes by pages; the table below has the largest, 15 boxes"
            label = browser.find_element(By.ID, "map").accessible_name
            assert label.startswith("Sites of .fr as boxes by pages")
            browser.switch_to.active_element.send_keys(Keys.TAB)
            assert browser.switch_to.active_element.accessible_name == "site59.fr 60"
            browser.switch_to.active_element.send_keys(Keys.ESCAPE)
            wait_until(lambda: len(tiles(browser)) == len(SUFFIXES) + 1, "the group is closed")
            assert browser.switch_to.active_element.accessible_name == ".fr 480, 15 sites", "where the reader was"

            browser.find_element(By.CSS_SELECTOR, '#map [data-group="org"]').click()
            wait_until(lambda: names(browser)[0] == "site57.org 58", "a click opens a group")
            browser.find_element(By.CSS_SELECTOR, "#map-by option[value=bytes]").click()
            wait_until(lambda: names(browser)[0] == "site57.org 58 kB", "boxes are by bytes")
            browser.find_element(By.ID, "map-out").click()
            wait_until(lambda: len(tiles(browser)) == len(SUFFIXES) + 1, "all groups are shown")
            browser.find_element(By.CSS_SELECTOR, '#map [data-group="com"]').click()
            wait_until(lambda: names(browser)[0].startswith("site56.com"), "another group is open")
            tiles(browser)[0].click()
            wait_until(partial(shows, browser, "site-name", "site56.com"), "a site's box leads to its page")
            assert console_errors(browser) == []


@pytest.mark.parametrize("width", [1280, 390])
@awaited
async def test_what_a_spider_counts_and_estimates_is_shown(
    tmp_path: Path, crawl_name: str, redis_url: str, width: int
) -> None:
    """The harvest beside the items and below the sites; a sample's bounds hold the truth, or are near."""
    async with world(tmp_path, crawl_name, redis_url, lease_seconds=600) as w:
        await fill(w, samples=width == 1280)
        with dashboard(w, tmp_path / "dashboard") as url, chromium() as browser:
            resize(browser, width)
            browser.get(url)
            open_section(browser, "pages")
            if width == 1280:
                wait_until(partial(shows, browser, "figures-of-spider", "estimated so far"), "the sample is shown")
                found = text(browser, "figures-of-spider").split("estimated so far ")[1].split("\n")[0]
                low, high = (int(word.replace(",", "")) for word in found.split(" to "))
                assert 0.5 * SKETCHED < low <= high < 1.7 * SKETCHED
            else:
                wait_until(partial(shows, browser, "figures-of-spider", "24% (120 of 500)"), "the harvest is shown")
            assert layout_faults(browser) == []
            assert accessibility(browser).violations == []
            assert console_errors(browser) == []
