"""Pictures of pages in Chromium, live and replayed, and whether they look the same."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tests.support.browsing.chromium import chromium
from tests.support.browsing.rendering import PATIENT
from tests.support.crawling.crawls import Crawl
from tests.support.replaying.pywb import pywb_proxy
from tests.support.servers.shown_site import shown_site

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

SIZE: Final = (800, 900)
SETTINGS: Final = {"BIGCRAWL_HOST_DELAY": 0, "BIGCRAWL_PARTITIONS": 2, "BIGCRAWL_SCOPE": "host"}
# The page is drawn with its fonts and pictures, and has asked for what it shows then for the first time.
_DRAWN: Final = """
const done = arguments[arguments.length - 1];
const shown = [...document.images].map((image) => image.decode().catch(() => 0));
Promise.all([document.fonts.ready, ...shown]).then(() => requestAnimationFrame(() => requestAnimationFrame(done)));
"""


class Look(NamedTuple):
    """A page as a browser shows it: a PNG file, and the status of each answer that it got, or the error."""

    picture: bytes
    answers: dict[str, int | str]


class Compared(NamedTuple):
    """The pages of a site, live and replayed, by URL; the crawl's figures of the WACZ file; its log."""

    live: dict[str, Look]
    replayed: dict[str, Look]
    packed: dict[str, Any]
    log: str

    @property
    def different(self) -> list[str]:
        """The pages that look different, and which answers they lack.

        Equal pixels are equal PNG files, because one encoder makes them.
        """
        return [
            f"{url}: {self._lacking(url) or 'the same answers'}"
            for url, look in self.live.items()
            if self.replayed[url].picture != look.picture
        ]

    def _lacking(self, url: str) -> str:
        """Say what the answers were live and are now, where they differ."""
        live, replayed = self.live[url].answers, self.replayed[url].answers
        changed = {asked for asked, _ in live.items() ^ replayed.items()}
        return ", ".join(f"{asked} {live.get(asked)} -> {replayed.get(asked)}" for asked in sorted(changed))

    @property
    def share(self) -> float:
        return 1 - len(self.different) / len(self.live)


def looks_at(browser: Any, urls: Iterable[str]) -> dict[str, Look]:
    wide, high = SIZE
    metrics = {"width": wide, "height": high, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.set_script_timeout(300)
    return {url: look_at(browser, url) for url in urls}


def look_at(browser: Any, url: str) -> Look:
    """Load and photograph a page until two pictures in a row are equal: a starved browser may draw one late."""
    look = whole_look_at(browser, url)
    while (again := whole_look_at(browser, url)).picture != look.picture:
        look = again
    return again


def whole_look_at(browser: Any, url: str) -> Look:
    """Photograph a page once each of its requests has ended, and what came with them is drawn and asks for no more."""
    browser.get_log("performance")  # of the page before
    browser.get(url)
    asked: dict[str, str] = {}
    answers: dict[str, int | str] = {}
    is_whole = False
    while not is_whole:
        is_whole = not asked
        browser.execute_async_script(_DRAWN)
        for row in browser.get_log("performance"):
            event = json.loads(row["message"])["message"]
            is_whole &= not _read(event["method"], event["params"], asked, answers)
    picture = browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"]
    return Look(base64.b64decode(picture), answers)


def _read(method: str, told: dict[str, Any], asked: dict[str, str], answers: dict[str, int | str]) -> bool:
    """Read an event into requests that have not ended and answers; return whether it is about a request."""
    match method:
        case "Network.requestWillBeSent":
            asked[told["requestId"]] = told["request"]["url"]
        case "Network.responseReceived":
            answers[told["response"]["url"]] = told["response"]["status"]
        case "Network.loadingFinished":
            asked.pop(told["requestId"], None)
        case "Network.loadingFailed":
            if url := asked.pop(told["requestId"], ""):
                answers.setdefault(url, told["errorText"])
        case _:
            return False
    return True


def through_proxy(port: int) -> tuple[str, str]:
    """Return Chromium's flags; it asks no proxy for its own machine, unless it is told to."""
    return f"--proxy-server=127.0.0.1:{port}", "--proxy-bypass-list=<-loopback>"


def compare(directory: Path, pages: int, requisites: str, *, is_rendered: bool = False) -> Compared:
    """Crawl a site, and compare what a browser shows of it, live and out of the WACZ file; then the site is down.

    If `is_rendered`, scripts write its pages, and the crawl renders them.
    """
    wacz = directory / "crawl.wacz"
    mode = "auto" if is_rendered else "off"
    settings = {**SETTINGS, **PATIENT, "BIGCRAWL_REQUISITES": requisites, "BIGCRAWL_RENDER": mode}
    with shown_site(pages, is_scripted=is_rendered) as (site, above):
        urls = [f"{above}{path}" for path in site.pages]
        with chromium(logs_network=True) as browser:
            live = looks_at(browser, urls)
        with Crawl(directory / "crawl", urls[:1], settings) as crawl:
            assert crawl.run(900) == 0, crawl.log.read_text()
            packed = crawl.asked("wacz", str(wacz))
    with (
        pywb_proxy(wacz, directory / "pywb") as port,
        chromium(*through_proxy(port), logs_network=True) as browser,
    ):
        replayed = looks_at(browser, urls)
    for number, url in enumerate(urls):
        if live[url].picture != replayed[url].picture:
            (directory / f"{number}-live.png").write_bytes(live[url].picture)
            (directory / f"{number}-replayed.png").write_bytes(replayed[url].picture)
    return Compared(live, replayed, packed, crawl.log.read_text())
