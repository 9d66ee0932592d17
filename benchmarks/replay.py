"""`python -m benchmarks.replay`: how many pages look the same when their archive is replayed.

A site of 300 pages (`tests.support.servers.shown_site`) is photographed by Chromium, crawled with its requisites, and
packed as WACZ. Then the site is down, pywb replays the file, and Chromium photographs each page through it. Pictures
are 800 by 900 pixels, and the same if no pixel differs. The same is done without requisites, and with pages that
scripts write and the crawl renders. Promised is 99 %; the exit status is 1 if that was missed. `--picture FILE` writes
two of the pages beside each other: live, replayed, and replayed without requisites.
"""

from __future__ import annotations

import argparse
import base64
import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.crawl.report import say
from tests.support.browsing.chromium import chromium
from tests.support.replaying.screenshots import compare
from tests.support.replaying.wacz import assert_valid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.support.replaying.screenshots import Look

PROMISED: Final = 0.99
SHOWN: Final = "/1/"
"""The path of the page that a picture shows."""
PICTURE: Final = (1200, 300)


def main(words: list[str] | None = None) -> int:
    chosen = _parser().parse_args(words)
    shares, pictures = {}, {}
    with tempfile.TemporaryDirectory() as name:
        for requisites, is_rendered in (("any", False), ("off", False), ("any", True)):
            began_s = time.monotonic()
            directory = Path(name) / f"{requisites}{is_rendered}"
            directory.mkdir()
            found = compare(directory, chosen.pages, requisites, is_rendered=is_rendered)
            assert_valid(directory / "crawl.wacz")
            shares[requisites, is_rendered] = found.share
            same = len(found.live) - len(found.different)
            packed = found.packed
            say(
                f"BIGCRAWL_REQUISITES={requisites}{', rendered' * is_rendered}: "
                f"{same:,} of {len(found.live):,} pages look the same "
                f"({100 * found.share:.1f} %); {packed['captures']:,} captures, {packed['bytes'] / 1e6:.1f} MB, "
                f"{time.monotonic() - began_s:.0f} s; load {os.getloadavg()[0]:.1f}"
            )
            for page in found.different[:5] if requisites == "any" else ():
                say(f"  different: {page}")
            if is_rendered:
                continue
            if requisites == "any":
                pictures["live"] = _shown(found.live)
            pictures["replayed" if requisites == "any" else "replayed without requisites"] = _shown(found.replayed)
    if chosen.picture:
        chosen.picture.write_bytes(_beside(pictures))
    return int(min(shares["any", False], shares["any", True]) < PROMISED)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks.replay", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pages", type=int, default=300)
    parser.add_argument("--picture", type=Path, metavar="FILE", help="write a PNG file of one page, live and replayed")
    return parser


def _shown(looks: Mapping[str, Look]) -> bytes:
    return next(look.picture for url, look in looks.items() if url.endswith(SHOWN))


def _beside(pictures: Mapping[str, bytes]) -> bytes:
    """Return one picture of several with their names."""
    parts = "".join(
        f"<figure><figcaption>{name}</figcaption><img src='data:image/png;base64,{base64.b64encode(data).decode()}'>"
        "</figure>"
        for name, data in pictures.items()
    )
    style = (
        "body{display:flex;gap:12px;margin:12px;font:16px sans-serif}figure{margin:0;width:384px;height:270px;overflow:"
        "hidden}img{width:384px;border:1px solid #bbb}figcaption{margin-bottom:6px}"
    )
    wide, high = PICTURE
    with chromium() as browser:
        metrics = {"width": wide, "height": high, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        browser.get("about:blank")
        browser.execute_script("document.write(arguments[0]); document.close()", f"<style>{style}</style>{parts}")
        time.sleep(1)
        return base64.b64decode(browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"])


if __name__ == "__main__":
    raise SystemExit(main())
