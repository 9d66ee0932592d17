"""Pictures of pages in Chromium, live and replayed, and whether they look the same."""

from __future__ import annotations

import base64
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tests.support.browsing.chromium import chromium
from tests.support.crawling.crawls import Crawl
from tests.support.replaying.pywb import pywb_proxy
from tests.support.servers.shown_site import shown_site

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

SIZE: Final = (800, 900)
STILL_S: Final = 0.2
LOOKS_MAX: Final = 50
SETTINGS: Final = {"BIGCRAWL_HOST_DELAY": 0, "BIGCRAWL_PARTITIONS": 2, "BIGCRAWL_SCOPE": "host"}
# The page is loaded: what a script writes, fonts and pictures, those of scripts too, and drawn.
_SETTLED: Final = """
const done = arguments[arguments.length - 1];
const app = document.getElementById("app"), since = Date.now();
const written = () => !app || app.childElementCount || Date.now() - since > 10000;
const filled = new Promise((then) => { const look = () => written() ? then() : setTimeout(look, 20); look() });
const ended = (image) => image.complete || new Promise((then) => image.onload = image.onerror = then);
filled.then(() => Promise.all([document.fonts.ready, ...[...document.images].map(ended)]))
  .then(() => requestAnimationFrame(() => requestAnimationFrame(done)));
"""


class Compared(NamedTuple):
    """The pages of a site: pictures of each live and replayed, by its URL, and the crawl's figures of the WACZ file."""

    live: dict[str, bytes]
    replayed: dict[str, bytes]
    packed: dict[str, Any]

    @property
    def different(self) -> list[str]:
        """The pages that look different. Equal pixels are equal PNG files, because one encoder makes them."""
        return [url for url, picture in self.live.items() if self.replayed[url] != picture]

    @property
    def share(self) -> float:
        return 1 - len(self.different) / len(self.live)


def pictures_of(browser: Any, urls: Iterable[str]) -> dict[str, bytes]:
    wide, high = SIZE
    metrics = {"width": wide, "height": high, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.set_script_timeout(120)
    return {url: picture_of(browser, url) for url in urls}


def picture_of(browser: Any, url: str) -> bytes:
    """Photograph a page once it stands still: what styles show may come after the page is loaded."""
    browser.get(url)
    browser.execute_async_script(_SETTLED)
    before = b""
    for _ in range(LOOKS_MAX):
        picture = base64.b64decode(browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"])
        if picture == before:
            break
        before = picture
        time.sleep(STILL_S)
    return picture


def through_proxy(port: int) -> tuple[str, str]:
    """Return Chromium's flags; it asks no proxy for its own machine, unless it is told to."""
    return f"--proxy-server=127.0.0.1:{port}", "--proxy-bypass-list=<-loopback>"


def compare(directory: Path, pages: int, requisites: str, *, is_rendered: bool = False) -> Compared:
    """Crawl a site, and compare what a browser shows of it, live and out of the WACZ file; then the site is down.

    If `is_rendered`, scripts write its pages, and the crawl renders them.
    """
    wacz = directory / "crawl.wacz"
    settings = {**SETTINGS, "BIGCRAWL_REQUISITES": requisites, "BIGCRAWL_RENDER": "auto" if is_rendered else "off"}
    with shown_site(pages, is_scripted=is_rendered) as (site, above):
        urls = [f"{above}{path}" for path in site.pages]
        with chromium() as browser:
            live = pictures_of(browser, urls)
        with Crawl(directory / "crawl", urls[:1], settings) as crawl:
            assert crawl.run(900) == 0, crawl.log.read_text()
            packed = crawl.asked("wacz", str(wacz))
    with pywb_proxy(wacz, directory / "pywb") as port, chromium(*through_proxy(port)) as browser:
        replayed = pictures_of(browser, urls)
        for url in [url for url in urls if replayed[url] != live[url]]:
            replayed[url] = picture_of(browser, url)  # on a busy machine it may have stood still before it was whole
    return Compared(live, replayed, packed)
