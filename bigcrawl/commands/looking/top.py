from __future__ import annotations

import asyncio
import io
import os
import signal
import sys
import termios
import tty
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from bigcrawl.commands.result import Result
from bigcrawl.exceptions import ConfigError, TransientStoreError
from bigcrawl.views.opened_crawl import in_crawl
from bigcrawl.views.watching import CrawlPolls

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from bigcrawl.config import Config
    from bigcrawl.views.opened_crawl import OpenedCrawl
    from bigcrawl.views.watching import PollResults

EVERY_S: Final = 2.0
EVERY_S_MIN: Final = 0.5
SNAPSHOT: Final = (120, 60)
"""Columns and lines without a terminal."""

ENDS: Final = b"qQ\x03\x04"


def top_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--once", action="store_true", help="print one snapshot and end; so it does if the output is no terminal")
    add("--every", type=float, default=EVERY_S, metavar="S", help=f"seconds between two looks; {EVERY_S:g} by default")


def top(config: Config, words: Sequence[str], opts: argparse.Namespace) -> Result:
    """Show the crawl live: why it stands still, rates, nodes, failures, and hosts with the most URLs waiting."""
    if find_spec("rich") is None:
        raise ConfigError("`scrapy frontier top` needs the package rich, which is missing: pip install 'bigcrawl[top]'")
    is_live = sys.stdout.isatty() and sys.stdin.isatty() and not (opts.once or opts.json)
    seen = in_crawl(config, _poll_crawl, max(EVERY_S_MIN, opts.every) if is_live else 0.0)
    return Result(_data_of(seen), snapshot_text(seen))


def _data_of(seen: PollResults) -> dict[str, Any]:
    return {"status": seen.status, "rates": dict(seen.rates), "hosts": seen.hosts, "errors": list(seen.errors)}


def snapshot_text(seen: PollResults) -> str:
    from rich.console import Console

    from bigcrawl.commands.looking.top_screen import screen_of

    width, height = SNAPSHOT
    if sys.stdout.isatty():
        width, height = size_of_terminal()
    text = io.StringIO()
    console = Console(file=text, width=width, force_terminal=False, color_system=None)
    console.print(screen_of(seen, width, height - 1, is_live=False))
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())


def size_of_terminal() -> tuple[int, int]:
    """Return the terminal's present columns and lines; the variable COLUMNS would not follow a resize."""
    size = os.get_terminal_size(sys.stdout.fileno())
    return size.columns or 80, size.lines or 24


async def _poll_crawl(crawl: OpenedCrawl, every_s: float) -> PollResults:
    watching = CrawlPolls(crawl)
    try:
        return await (LiveScreen(watching, every_s).run() if every_s else watching.poll(is_only=True))
    finally:
        await watching.close()


class LiveScreen:
    """A screen that is redrawn after each poll or resize, until a key or a signal ends it."""

    def __init__(self, watching: CrawlPolls, every_s: float) -> None:
        self._watching = watching
        self._every_s = every_s
        self._is_ended = False
        self._changed = asyncio.Event()

    async def run(self) -> PollResults:
        from rich.console import Console, ConsoleDimensions
        from rich.live import Live as Screen

        from bigcrawl.commands.looking.top_screen import screen_of

        seen = await self._watching.poll()
        if seen.status is None:
            raise TransientStoreError(seen.trouble)
        looking = asyncio.create_task(self._poll_repeatedly())
        console = Console(file=sys.stdout, force_terminal=True)
        try:
            with self._reading_keys(), Screen(console=console, screen=True, auto_refresh=False) as screen:
                while not self._is_ended:
                    self._changed.clear()
                    seen = self._watching.last_results
                    width, height = size_of_terminal()
                    console.size = ConsoleDimensions(width, height)
                    screen.update(screen_of(seen, width, height, is_live=True), refresh=True)
                    await self._changed.wait()
                    if looking.done():
                        break
        finally:
            looking.cancel()
            [failure] = await asyncio.gather(looking, return_exceptions=True)
        if isinstance(failure, Exception):
            raise failure
        return seen

    async def _poll_repeatedly(self) -> None:
        try:
            while True:
                await asyncio.sleep(self._every_s)
                await self._watching.poll()
                self._changed.set()
        finally:
            self._changed.set()

    def _request_end(self) -> None:
        self._is_ended = True
        self._changed.set()

    def _record_keys(self, descriptor: int) -> None:
        keys = os.read(descriptor, 1024)
        if not keys or set(keys) & set(ENDS):
            self._request_end()

    @contextmanager
    def _reading_keys(self) -> Iterator[None]:
        """Read keys one by one without echo, and handle signals; restore the terminal afterwards."""
        loop, descriptor = asyncio.get_running_loop(), sys.stdin.fileno()
        before = termios.tcgetattr(descriptor)
        handlers = {
            signal.SIGINT: self._request_end,
            signal.SIGTERM: self._request_end,
            signal.SIGWINCH: self._changed.set,
        }
        try:
            tty.setcbreak(descriptor)
            loop.add_reader(descriptor, self._record_keys, descriptor)
            for number, handler in handlers.items():
                loop.add_signal_handler(number, handler)
            yield
        finally:
            for number in handlers:
                loop.remove_signal_handler(number)
            loop.remove_reader(descriptor)
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
