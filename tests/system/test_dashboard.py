"""The dashboard of a live crawl in a real Chromium: what it shows, on a screen and a phone, and that its controls work.

Debian's packages `chromium` and `chromium-driver`.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By

from tests.integration.watching.test_dashboard import TOKEN, ask, port_in, settings_of
from tests.support.crawling.crawls import Crawl, SimulatedWeb
from tests.support.running.processes import no_strays_below, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.system

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
PHONE = {"width": 360, "height": 780, "deviceScaleFactor": 1, "mobile": True}
PLOTS = 9
PAGE_BYTES_MAX = 5_000_000


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Any]:
    """A Chromium with an empty profile."""
    options = webdriver.ChromeOptions()
    for flag in (*FLAGS, "--window-size=1400,900", f"--user-data-dir={tmp_path / 'profile'}"):
        options.add_argument(flag)
    options.binary_location = "/usr/bin/chromium"
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    found = webdriver.Chrome(options=options, service=webdriver.ChromeService("/usr/bin/chromedriver"))
    yield found
    found.quit()


def text(browser: Any, element: str) -> str:
    return str(browser.find_element(By.ID, element).text)


def shows(browser: Any, element: str, word: str) -> bool:
    return word in text(browser, element)


def are_drawn(browser: Any) -> bool:
    """Whether each plot's canvas has painted pixels."""
    script = """return [...document.querySelectorAll("#plots canvas")].map((canvas) => new Uint32Array(canvas
        .getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer).filter(Boolean).length)"""
    painted: list[int] = browser.execute_script(script)
    return len(painted) == PLOTS and min(painted) > 1_000


def submit(browser: Any, form: str, verb: str) -> None:
    button = browser.find_element(By.CSS_SELECTOR, f'form[data-action="{form}"] button[value="{verb}"]')
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", button)
    button.click()


def test_page_shows_a_live_crawl_and_its_controls_work(browser: Any, tmp_path: Path) -> None:
    """Plots and tables have content, nothing is wrong in the console, and a phone need not scroll sideways."""
    with no_strays_below(tmp_path), SimulatedWeb(tmp_path / "web", hosts=8, pages=400) as web:
        seeds = [*web.seeds, f"{web.seeds[0]}no/such/page"]
        with Crawl(tmp_path / "crawl", seeds, settings_of(BIGCRAWL_HOST_DELAY=0.4)) as crawl:
            crawl.start()
            port = port_in(crawl.log)
            wait_until(lambda: len(ask(port, "history")[1]["time_s"]) > 1, "samples are taken")
            wait_until(lambda: ask(port, "errors")[1]["errors"] != [], "failures are told")
            browser.get(f"http://127.0.0.1:{port}/")

            wait_until(lambda: "crawling" in text(browser, "state"), "the state is shown")
            wait_until(partial(are_drawn, browser), "all plots are drawn")
            host = web.seeds[0].split("//")[1].partition(":")[0]
            for table, word in {
                "hosts": host,
                "nodes": "runs",
                "outcomes": "status:200",
                "errors": "status:404",
                "plds": host,
                "failing": host,
                "disks": "WARC files",
                "figures": "URLs seen",
            }.items():
                wait_until(partial(shows, browser, table, word), f"{word} is in {table}")

            browser.find_element(By.ID, "word").send_keys(web.seeds[0])
            browser.find_element(By.CSS_SELECTOR, "#search-form button").click()
            wait_until(lambda: "outcome" in text(browser, "found"), "what became of a URL is shown")

            pause = browser.find_element(By.CSS_SELECTOR, 'form[data-action="pause"] button')
            assert not pause.is_enabled(), "nothing can be changed without the token"
            browser.find_element(By.ID, "token").send_keys(TOKEN + "\n")
            wait_until(pause.is_enabled, "the token turns the controls on")
            assert TOKEN not in browser.current_url
            assert not browser.execute_script("return document.cookie + JSON.stringify(localStorage)").strip("{}")
            submit(browser, "pause", "pause")
            browser.switch_to.alert.accept()
            wait_until(lambda: "crawl test" in text(browser, "done"), "the pause is told")
            wait_until(lambda: ask(port, "speed")[1]["paused"] == [""], "the crawl is paused")
            wait_until(lambda: "stands still" in text(browser, "state"), "the page says that the crawl stands still")
            submit(browser, "pause", "resume")
            wait_until(lambda: ask(port, "speed")[1]["paused"] == [], "the crawl goes on")

            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
            for element in ("html", "main", "#plots", "#hosts"):
                script = f"let of = document.querySelector('{element}'); return of.scrollWidth - of.clientWidth"
                assert browser.execute_script(script) <= 0, f"{element} is not wider than a phone"
            sizes = browser.execute_script(
                "return JSON.stringify(performance.getEntriesByType('resource').map((each) => "
                "[each.name, each.transferSize]))"
            )
            loaded = json.loads(sizes)
            assert {name.split("/")[2] for name, _ in loaded} == {f"127.0.0.1:{port}"}, "nothing comes from elsewhere"
            assert sum(size for _, size in loaded) < PAGE_BYTES_MAX
            said = [row for row in browser.get_log("browser") if "getImageData" not in row["message"]]  # this test's
            wrong = [row for row in said if row["level"] not in ("INFO", "DEBUG")]
            assert not wrong
            assert TOKEN not in crawl.log.read_text()
