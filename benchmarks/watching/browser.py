"""The dashboard in a real Chromium: the time until all is shown, and the bytes. Needs the package `chromium-driver`."""

from __future__ import annotations

import tempfile
from typing import Final, NamedTuple

from selenium import webdriver

FLAGS: Final = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--window-size=1400,900"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
SHOWN: Final = ("figures", "plots", "nodes", "errors", "outcomes", "plds", "disks", "blacklist", "hosts")
LOAD_S_MAX: Final = 120
# The time since the navigation began, as soon as each part has content and the plots' canvases are there.
_LOADED_MS: Final = """
const done = arguments[arguments.length - 1];
const shown = () => arguments[0].every((id) => document.getElementById(id)?.childElementCount);
const look = () => shown() && document.querySelector("#plots canvas") ? done(performance.now()) : setTimeout(look, 5);
look();
"""
_BYTES: Final = """
return ["navigation", "resource"].flatMap((kind) => performance.getEntriesByType(kind))
    .reduce((sum, each) => sum + each.transferSize, 0);
"""


class Load(NamedTuple):
    """One load of the page: until all parts have content, the CPU of the page's thread, and all bytes by then."""

    ms: float
    cpu_ms: float
    bytes: int


def loads(url: str, times: int) -> list[Load]:
    """Load the page, each time in a browser with an empty profile."""
    return [_load(url) for _ in range(times)]


def _load(url: str) -> Load:
    with tempfile.TemporaryDirectory() as profile:
        options = webdriver.ChromeOptions()
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.binary_location = "/usr/bin/chromium"
        browser = webdriver.Chrome(options=options, service=webdriver.ChromeService("/usr/bin/chromedriver"))
        try:
            browser.set_script_timeout(LOAD_S_MAX)
            browser.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
            browser.get(url)
            ms = float(browser.execute_async_script(_LOADED_MS, list(SHOWN)))
            metrics = browser.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
            [cpu_s] = [each["value"] for each in metrics if each["name"] == "TaskDuration"]
            return Load(ms, 1000 * cpu_s, int(browser.execute_script(_BYTES)))
        finally:
            browser.quit()
