"""Chromium by selenium: a browser with an empty profile, at any width and in both schemes."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from selenium import webdriver

if TYPE_CHECKING:
    from collections.abc import Iterator

WIDTHS: Final = {1280: 900, 768: 1024, 390: 844}
"""The heights of windows by their widths: a screen, a tablet, a phone."""

SCHEMES: Final = ("light", "dark")
FLAGS: Final = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


@contextmanager
def chromium(*more: str, logs_network: bool = False) -> Iterator[Any]:
    """Start a browser, with `more` flags. Its log "browser" is what the console says, "performance" the network."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = webdriver.ChromeOptions()
        for flag in (*FLAGS, *more, "--window-size=1280,900", f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.binary_location = "/usr/bin/chromium"
        logs = {"browser": "ALL", **({"performance": "ALL"} if logs_network else {})}
        options.set_capability("goog:loggingPrefs", logs)
        browser = webdriver.Chrome(options=options, service=webdriver.ChromeService("/usr/bin/chromedriver"))
        try:
            yield browser
        finally:
            browser.quit()


def resize(browser: Any, width: int, scheme: str = "light", height: int = 0) -> None:
    """Show the page as a device of this width does, in a scheme; without a height, in that of `WIDTHS`."""
    metrics = {"width": width, "height": height or WIDTHS[width], "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})


def console_errors(browser: Any) -> list[dict[str, Any]]:
    """What the console says since the last call, except information."""
    return [row for row in browser.get_log("browser") if row["level"] not in ("INFO", "DEBUG")]
