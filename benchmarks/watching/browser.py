"""The dashboard in a real Chromium: the time to its first paint, and what an update takes of the page's main thread.

Needs the package `chromium-driver`.
"""

from __future__ import annotations

import itertools
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tests.support.browsing.chromium import chromium, resize

if TYPE_CHECKING:
    from collections.abc import Iterator

LOAD_S_MAX: Final = 120
EVERY_S: Final = 2
UPDATES: Final = 15  # that are watched at the first screen
SECTION_UPDATES: Final = 5  # and at each section further down
WIDTH: Final = 1280
ALL_HIGH: Final = 14_000  # pixels of a window in which each section is in view
# The time since the navigation began, as soon as the first screen has figures and a drawn plot.
_LOADED_MS: Final = """
const done = arguments[arguments.length - 1];
const look = () => document.querySelector("#figures .value") && document.querySelector("#plot canvas")
    ? requestAnimationFrame(() => done(performance.now())) : setTimeout(look, 5);
look();
"""
_PAINTED_MS: Final = "return performance.getEntriesByName('first-contentful-paint')[0].startTime"
_BYTES: Final = """
return ["navigation", "resource"].flatMap((kind) => performance.getEntriesByType(kind))
    .reduce((sum, each) => sum + each.transferSize, 0);
"""
_SECTIONS: Final = "return [...document.querySelectorAll('[data-section]')].map((each) => each.dataset.section)"
# Tasks of 50 ms and more; the browser tells of no shorter ones.
_LONG_TASKS: Final = """
window.longTasks = [];
new PerformanceObserver((list) => longTasks.push(...list.getEntries().map((each) => each.duration)))
    .observe({type: "longtask"});
"""


class Load(NamedTuple):
    """One load of the page.

    Attributes:
        painted_ms, ms: until the first paint with content; until the first screen has its figures and its plot.
        update_ms: CPU of the page's main thread in each `EVERY_S` after that, in which there is one update.
        long_task_ms: the longest task meanwhile, 0 if none took 50 ms.
        bytes: all that was loaded until then.
    """

    painted_ms: float
    ms: float
    update_ms: list[float]
    long_task_ms: float
    bytes: int


def load(url: str) -> Load:
    """Load the page in a browser with an empty profile, and watch its first screen."""
    with opened(url) as browser:
        ms = float(browser.execute_async_script(_LOADED_MS))
        time.sleep(2 * EVERY_S)  # what the first round has left to do
        browser.execute_script(_LONG_TASKS)
        updates = _updates(browser, UPDATES)
        return Load(
            float(browser.execute_script(_PAINTED_MS)),
            ms,
            updates,
            max(browser.execute_script("return longTasks"), default=0.0),
            int(browser.execute_script(_BYTES)),
        )


def section_updates(url: str) -> dict[str, list[float]]:
    """Return the CPU of the main thread in each update, by the section that is in view."""
    found = {}
    with opened(url) as browser:
        browser.execute_async_script(_LOADED_MS)
        for section in browser.execute_script(_SECTIONS):
            browser.execute_script("document.querySelector(`[data-section=${arguments[0]}]`).scrollIntoView()", section)
            time.sleep(2 * EVERY_S)  # its first content is no update
            found[section] = _updates(browser, SECTION_UPDATES)
    return found


def _updates(browser: Any, count: int) -> list[float]:
    spent, due_s = [_thread_ms(browser)], time.monotonic()
    for _ in range(count):
        due_s += EVERY_S
        time.sleep(max(0.0, due_s - time.monotonic()))
        spent.append(_thread_ms(browser))
    return [after - before for before, after in itertools.pairwise(spent)]


@contextmanager
def opened(url: str, *, has_all: bool = False) -> Iterator[Any]:
    with chromium() as browser:
        browser.set_script_timeout(LOAD_S_MAX)
        browser.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
        resize(browser, WIDTH, height=ALL_HIGH if has_all else 0)
        browser.get(url)
        yield browser


def _thread_ms(browser: Any) -> float:
    metrics = browser.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    [cpu_s] = [each["value"] for each in metrics if each["name"] == "TaskDuration"]
    return 1000 * float(cpu_s)
