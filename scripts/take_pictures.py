"""`make pictures`: pictures of the dashboard and the report of a small crawl, at three widths, in both schemes.

They go to build/pictures; those of the first screens also to docs/dashboard.png and docs/report.png. The crawl is real
and offline: a simulated web with a topic, a node that is killed, and one that goes on after a while.
"""

from __future__ import annotations

import argparse
import base64
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.integration.watching.test_dashboard import ask, port_in, settings_of
from tests.support.browsing.chromium import SCHEMES, WIDTHS, chromium, console_errors, resize
from tests.support.browsing.layout import accessibility, layout_faults
from tests.support.crawling.crawls import Crawl, SimulatedWeb
from tests.support.running.processes import no_strays_below, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterable

PROJECT: Final = Path(__file__).resolve().parents[1]
STOPPED_S: Final = 45.0


def take(browser: Any, path: Path, *, whole: bool) -> None:
    """Write a picture of the window, or of the whole page."""
    options = {"format": "png", "captureBeyondViewport": whole}
    if whole:
        high = browser.execute_script("return document.documentElement.scrollHeight")
        wide = browser.execute_script("return document.documentElement.clientWidth")
        options["clip"] = {"x": 0, "y": 0, "width": wide, "height": high, "scale": 1}
    found = browser.execute_cdp_cmd("Page.captureScreenshot", options)
    path.write_bytes(base64.b64decode(found["data"]))


def settle(browser: Any) -> None:
    """Let each section come into view once, so that it has content."""
    sections = browser.execute_script("return document.querySelectorAll('[data-section]').length")
    for at in range(sections):
        browser.execute_script("document.querySelectorAll('[data-section]')[arguments[0]].scrollIntoView()", at)
        time.sleep(0.4)
    browser.execute_script("scrollTo(0, 0)")
    time.sleep(2.5)


def photograph(browser: Any, url: str, name: str, into: Path, widths: Iterable[int]) -> None:
    for width in widths:
        for scheme in SCHEMES:
            resize(browser, width, scheme)
            browser.get("about:blank")
            browser.get(url)
            time.sleep(2)
            settle(browser)
            take(browser, into / f"{name}-{width}-{scheme}.png", whole=True)
            faults = layout_faults(browser)
            found = accessibility(browser)
            sys.stdout.write(f"{name} {width} {scheme}: Lighthouse's score of accessibility {found.score:g}\n")
            for fault in (*faults, *found.violations, *console_errors(browser)):
                sys.stdout.write(f"{name} {width} {scheme}: {fault}\n")
    sys.stdout.flush()


def take_first_screen(browser: Any, url: str, name: str) -> None:
    """Write a picture for the pages of docs."""
    resize(browser, 1280)
    browser.get(url)
    time.sleep(5)
    take(browser, PROJECT / "docs" / f"{name}.png", whole=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--widths", type=int, nargs="*", default=list(WIDTHS), choices=list(WIDTHS))
    parser.add_argument("--seconds", type=float, default=60, help="that the crawl runs before and after its stop")
    chosen = parser.parse_args()
    into = PROJECT / "build" / "pictures"
    into.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as directory,
        SimulatedWeb(Path(directory) / "web", hosts=60, pages=2_000) as web,
    ):
        seeds = [*web.seeds, f"{web.seeds[0]}no/such/page"]
        settings = settings_of(BIGCRAWL_HOST_DELAY=0.5, BIGCRAWL_REPORT_DIR=Path(directory) / "report")
        topic = {"topic": "lantern", "threshold": "0.99"}
        news = Crawl(Path(directory) / "crawl", seeds, settings, "news", topic, spider="focused")
        with no_strays_below(Path(directory)), news as crawl, chromium() as browser:
            crawl.start()
            port = port_in(crawl.log)
            wait_until(lambda: len(ask(port, "history")[1]["time_s"]) > 2, "samples are taken")
            time.sleep(chosen.seconds)
            crawl.kill()
            time.sleep(STOPPED_S)
            crawl.start()
            port = port_in(crawl.log)
            wait_until(lambda: ask(port, "status")[1]["pages_per_s"] > 0, "the crawl goes on")
            time.sleep(chosen.seconds)
            url = f"http://127.0.0.1:{port}/"
            take_first_screen(browser, url, "dashboard")
            photograph(browser, url, "dashboard", into, chosen.widths)
            host = web.seeds[0].split("//")[1].partition("/")[0].partition(":")[0]
            for kind in ("host", "pld"):
                photograph(browser, f"{url}#/{kind}/{host}", kind, into, chosen.widths)
            crawl.frontier("report", str(Path(directory) / "report"))
            report = (Path(directory) / "report" / "report.html").as_uri()
            take_first_screen(browser, report, "report")
            photograph(browser, report, "report", into, chosen.widths)


if __name__ == "__main__":
    main()
