"""The dashboard of a live crawl in a real Chromium: what it shows, at any width and in both schemes, and its controls.

Debian's packages `chromium` and `chromium-driver`; axe-core by `scripts/install_axe`.
"""

from __future__ import annotations

import json
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.integration.watching.test_dashboard import TOKEN, ask, port_in, settings_of
from tests.support.browsing.chromium import SCHEMES, WIDTHS, chromium, console_errors, resize
from tests.support.browsing.layout import accessibility, layout_faults, layout_shift
from tests.support.browsing.lighthouse import SCORE_MIN
from tests.support.crawling.crawls import Crawl, SimulatedWeb
from tests.support.running.processes import no_strays_below, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.system

SECTIONS = {
    "failures": {"errors": "status:404", "failing": "{host}", "outcomes": "status:200"},
    "hosts": {"hosts-list": "{host}"},
    "pages": {"map": "{host}", "plds": "{host}"},
    "nodes": {"nodes-list": "runs", "disks": "WARC files"},
    "queues": {"queues-list": "on disk"},
    "budgets": {"blacklist": "blacklist"},
    "politeness": {"politeness-list": "robots.txt"},
    "live": {"fetches": "", "items": "", "log": ""},
    "crawls": {"crawls-list": "", "jobs": ""},
}
PAGE_BYTES_MAX = 5_000_000
PLOTS_MIN = 10
SHIFT_MAX = 0.1
"""What Lighthouse calls good."""


@pytest.fixture(scope="module")
def started() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture
def browser(started: Any) -> Iterator[Any]:
    """A tab of its own, which knows no token."""
    first = started.current_window_handle
    started.switch_to.new_window("tab")
    console_errors(started)  # those of other tests
    yield started
    started.close()
    started.switch_to.window(first)


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Crawl, int, str]]:
    """A crawl of eight hosts that lasts half an hour, of which some pages fail; the dashboard's port; a host."""
    directory = tmp_path_factory.mktemp("crawl")
    with no_strays_below(directory), SimulatedWeb(directory / "web", hosts=8, pages=1_000) as web:
        seeds = [*web.seeds, f"{web.seeds[0]}no/such/page"]
        with Crawl(directory / "crawl", seeds, settings_of(BIGCRAWL_HOST_DELAY=2)) as found:
            found.start()
            port = port_in(found.log)
            wait_until(lambda: len(ask(port, "history")[1]["time_s"]) > 1, "samples are taken")
            wait_until(lambda: ask(port, "errors")[1]["errors"] != [], "failures are listed")
            yield found, port, web.seeds[0].split("//")[1].partition("/")[0].partition(":")[0]


def text(browser: Any, element: str) -> str:
    return str(browser.find_element(By.ID, element).text)


def shows(browser: Any, element: str, word: str) -> bool:
    return word in text(browser, element) and bool(text(browser, element))


def open_section(browser: Any, section: str) -> None:
    browser.execute_script("document.querySelector(`[data-section=${arguments[0]}]`).scrollIntoView()", section)


def painted_canvases(browser: Any) -> list[int]:
    """How many pixels each plot's canvas has painted."""
    script = """return [...document.querySelectorAll("canvas")].map((canvas) => new Uint32Array(canvas
        .getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer).filter(Boolean).length)"""
    painted: list[int] = browser.execute_script(script)
    return painted


def visit_sections(browser: Any, host: str = "") -> None:
    """Bring each section into view, and wait for its content."""
    for section, parts in SECTIONS.items():
        open_section(browser, section)
        for element, word in parts.items():
            wait_until(partial(shows, browser, element, word.format(host=host)), f"{word} is in {element}")


def press(browser: Any, form: str, verb: str) -> None:
    button = browser.find_element(By.CSS_SELECTOR, f'{form} button[value="{verb}"]')
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", button)
    button.click()


def enter_token(browser: Any) -> None:
    pause = browser.find_element(By.CSS_SELECTOR, 'form[data-change="pause"] button')
    assert not pause.is_enabled(), "nothing can be changed without the token"
    browser.find_element(By.ID, "token").send_keys(TOKEN + "\n")
    wait_until(pause.is_enabled, "the token turns the controls on")


def test_page_shows_a_live_crawl(browser: Any, watched: tuple[Crawl, int, str]) -> None:
    """Each section has its content once it is in view, each plot is painted, and nothing comes from elsewhere."""
    _, port, host = watched
    browser.get(f"http://127.0.0.1:{port}/")
    wait_until(partial(shows, browser, "state", "Crawling"), "the state is shown")
    wait_until(partial(shows, browser, "figures", "URLs waiting"), "the figures are shown")
    visit_sections(browser, host)
    wait_until(lambda: len(found := painted_canvases(browser)) >= PLOTS_MIN and min(found) > 500, "all plots are drawn")
    loaded = json.loads(
        browser.execute_script(
            "return JSON.stringify(performance.getEntriesByType('resource').map((each) => "
            "[each.name, each.transferSize]))"
        )
    )
    assert {name.split("/")[2] for name, _ in loaded} == {f"127.0.0.1:{port}"}
    assert sum(size for _, size in loaded) < PAGE_BYTES_MAX
    said = [row for row in console_errors(browser) if "getImageData" not in row["message"]]  # this test's
    assert [row for row in said if "404" not in row["message"]] == []


@pytest.mark.parametrize("width", WIDTHS)
def test_layout_has_no_fault_and_nothing_keeps_people_out(
    browser: Any, watched: tuple[Crawl, int, str], width: int
) -> None:
    """No text lies on other text, nothing is cut or moves, no window scrolls sideways, and axe-core finds nothing."""
    _, port, host = watched
    for path in ("", f"#/host/{host}", f"#/pld/{host}", f"#/url/{f'http://{host}/'.replace('/', '%2F')}"):
        resize(browser, width)
        browser.get("about:blank")
        browser.get(f"http://127.0.0.1:{port}/{path}")
        if path:
            wait_until(
                partial(shows, browser, "site-parts", "known" if "pld" not in path else "Budget"), "the page has parts"
            )
        else:
            wait_until(partial(shows, browser, "figures", "URLs waiting"), "the figures are shown")
        assert layout_shift(browser) < SHIFT_MAX, path
        if not path:
            visit_sections(browser)
        browser.execute_script("scrollTo(0, 0)")
        for scheme in SCHEMES:
            resize(browser, width, scheme)
            assert layout_faults(browser) == [], (path, scheme)
            found = accessibility(browser)
            assert found.violations == [], (path, scheme)
            assert found.passed > 20
            assert found.score >= SCORE_MIN, (path, scheme)


def test_controls_say_what_they_do_and_can_be_undone(browser: Any, watched: tuple[Crawl, int, str]) -> None:
    found, port, host = watched
    browser.get(f"http://127.0.0.1:{port}/")
    enter_token(browser)
    assert TOKEN not in browser.current_url
    assert not browser.execute_script("return document.cookie + JSON.stringify(localStorage)").strip("{}")
    assert "begin none" in text(browser, "steer-pause-pause-will")
    press(browser, '[data-change="pause"]', "pause")
    wait_until(lambda: "crawl test" in text(browser, "done"), "the pause is confirmed")
    wait_until(lambda: ask(port, "speed")[1]["paused"] == [""], "the crawl is paused")
    wait_until(partial(shows, browser, "state", "Paused"), "the page says that the crawl is paused")
    browser.find_element(By.CSS_SELECTOR, "#done button").click()
    wait_until(lambda: ask(port, "speed")[1]["paused"] == [], "the pause is undone")

    browser.get(f"http://127.0.0.1:{port}/#/pld/{host}")
    wait_until(lambda: browser.find_element(By.ID, "site-budget-urls").is_enabled(), "the page of a site has controls")
    browser.find_element(By.ID, "site-budget-urls").send_keys("7")
    assert f"{host} gets 7 URLs a turn" in text(browser, "site-budget-budget-will")
    press(browser, "#site-forms", "budget")
    wait_until(lambda: ask(port, f"budget?word={host}")[1]["rule_by_hand"] == {"budget": 7}, "the limit is set")
    wait_until(lambda: "Undo" in text(browser, "done"), "the limit can be undone")
    browser.find_element(By.CSS_SELECTOR, "#done button").click()
    wait_until(lambda: ask(port, f"budget?word={host}")[1]["rule_by_hand"] is None, "the limit is undone")

    browser.get(f"http://127.0.0.1:{port}/#/host/{host}")
    wait_until(partial(shows, browser, "site-parts", "robots.txt"), "the page of a host is shown")
    press(browser, "#site-forms", "awaken")
    wait_until(partial(shows, browser, "question", "cannot be undone"), "what has no inverse is asked first")
    browser.find_element(By.ID, "question-yes").send_keys(Keys.ESCAPE)
    wait_until(lambda: not text(browser, "question"), "the question is closed")
    assert TOKEN not in found.log.read_text()


def test_keyboard_reads_a_plot_and_focus_stays(browser: Any, watched: tuple[Crawl, int, str]) -> None:
    """Arrows move along a plot, whose values are said; an element keeps its focus while its section is drawn anew."""
    _, port, _ = watched
    browser.get(f"http://127.0.0.1:{port}/")
    slider = browser.find_element(By.CSS_SELECTOR, "#plot [role=slider]")
    wait_until(lambda: "pages" in slider.get_attribute("aria-valuetext"), "the plot has values")
    slider.send_keys(Keys.END, Keys.ARROW_LEFT)
    before = slider.get_attribute("aria-valuetext")
    slider.send_keys(Keys.ARROW_LEFT)
    assert slider.get_attribute("aria-valuetext") != before
    open_section(browser, "failures")
    wait_until(partial(shows, browser, "errors", "status:404"), "failures are shown")
    link = browser.find_element(By.CSS_SELECTOR, "#errors a")
    browser.execute_script("arguments[0].focus({preventScroll: true})", link)
    time.sleep(12)  # a round of this section
    assert browser.execute_script("return document.activeElement === arguments[0]", link)
    browser.find_element(By.CSS_SELECTOR, "#plot details summary").click()
    wait_until(lambda: len(browser.find_elements(By.CSS_SELECTOR, "#plot details tbody tr")) > 1, "a table of numbers")
