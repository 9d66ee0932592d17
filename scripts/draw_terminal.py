"""`python -m scripts.draw_terminal`: docs/terminal.svg, a terminal of 100 columns in which a crawl runs.

The crawl is real and offline. The picture is the terminal's text, as it stands some seconds after the start.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import struct
import tempfile
import termios
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final
from xml.sax.saxutils import escape

import pyte

from tests.support.crawling.crawls import Crawl, SimulatedWeb
from tests.support.running.processes import no_strays_below, spawn

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PICTURE: Final = Path(__file__).resolve().parents[1] / "docs" / "terminal.svg"
COLUMNS, LINES = 100, 14
SECONDS: Final = 25.0
CHARACTER, LINE = 7.8, 18  # pixels


def lines_of(crawl: Crawl) -> list[str]:
    """Run a crawl in a terminal for `SECONDS`, and return the lines on its screen."""
    screen = pyte.Screen(COLUMNS, LINES)
    stream = pyte.ByteStream(screen)
    with _terminal() as (ours, its):
        process = spawn(crawl.command(), env=crawl._environment(), stdout=its, stderr=its, cwd=crawl.directory)
        ends = time.monotonic() + SECONDS
        while (left := ends - time.monotonic()) > 0:
            if select.select([ours], [], [], left)[0]:
                stream.feed(os.read(ours, 65_536))
        lines = [line.rstrip() for line in screen.display]
        process.kill()
        process.wait()
    return lines


@contextlib.contextmanager
def _terminal() -> Iterator[tuple[int, int]]:
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    try:
        yield ours, its
    finally:
        os.close(ours)
        os.close(its)


def picture_of(lines: Sequence[str]) -> str:
    wide, high = round(COLUMNS * CHARACTER) + 24, len(lines) * LINE + 24
    rows = "\n".join(
        f'<text x="12" y="{12 + LINE * (number + 0.75):g}" xml:space="preserve">{escape(line)}</text>'
        for number, line in enumerate(lines)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" font-family="monospace" font-size="13">\n'
        f'<title>A crawl in a terminal</title>\n<rect width="{wide}" height="{high}" rx="6" fill="#1b1f27"/>\n'
        f'<g fill="#d7dae0">\n{rows}\n</g>\n</svg>\n'
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as name, no_strays_below(Path(name)):
        directory = Path(name)
        with SimulatedWeb(directory / "web", hosts=40, pages=200) as web:
            settings = {
                "BIGCRAWL_HOST_DELAY": 0.25,
                "BIGCRAWL_SERVER_DELAY": 0.25,
                "LOG_FORMAT": "%(levelname)s: %(message)s",
            }
            with Crawl(directory / "crawl", web.seeds, settings, "news") as crawl:
                lines = lines_of(crawl)
    PICTURE.write_text(picture_of(lines), "utf-8")


if __name__ == "__main__":
    main()
