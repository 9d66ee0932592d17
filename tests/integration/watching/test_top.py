"""An operator watches a crawl in a terminal of some size, and in a pipe; and reads how it went."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import signal
import struct
import sys
import termios
import threading
import time
from typing import TYPE_CHECKING

import pyte
import pytest

from bigcrawl.scheduler.crawl.history import EVERY_MS
from tests.support.crawling.crawls import Crawl, SimulatedWeb
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.support.running.processes import spawn, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SETTINGS = {"BIGCRAWL_PARTITIONS": 4, "BIGCRAWL_HOST_DELAY": 2, "BIGCRAWL_BACKOFF": 60}
NOBODY = "http://127.88.0.1:9/nobody/listens"


class Terminal:
    """`scrapy frontier top` in a terminal, and what stands on its screen."""

    def __init__(self, crawl: Crawl, columns: int, lines: int) -> None:
        self._screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self._screen)
        self._lock = threading.Lock()
        self.said = b""
        self._ours, its = pty.openpty()
        self._its = os.dup(its)
        self.before = termios.tcgetattr(its)
        self._set_size(columns, lines)
        self.process = spawn(
            [sys.executable, "-m", "scrapy", "frontier", "top", "--every", "0.5", *crawl.options()],
            env={**crawl._environment(), "TERM": "xterm", "COLUMNS": "60"},
            stdin=its,
            stdout=its,
            stderr=its,
        )
        os.close(its)
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            while said := os.read(self._ours, 65_536):
                with self._lock:
                    self.said += said
                    self._stream.feed(said)

    def _set_size(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self._its, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def resize(self, columns: int, lines: int) -> None:
        """The window gets another size, of which a terminal tells its process."""
        with self._lock:
            self._screen.resize(lines, columns)
            self._screen.reset()
        self._set_size(columns, lines)
        self.process.send_signal(signal.SIGWINCH)

    def press(self, keys: bytes) -> None:
        os.write(self._ours, keys)

    @property
    def lines(self) -> list[str]:
        with self._lock:
            return [line.rstrip() for line in self._screen.display]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def wait_for(self, *words: str) -> None:
        try:
            wait_until(lambda: all(word in self.text for word in words), f"{words} on the screen")
        except TimeoutError as error:
            raise AssertionError(f"{error}; there is:\n{self.text}") from None

    def wait(self) -> int:
        """Wait until it has ended, and everything is read."""
        status = self.process.wait(300)
        self.after = termios.tcgetattr(self._its)
        os.close(self._its)
        self._reader.join()
        return status

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.wait()
        os.close(self._ours)


@contextlib.contextmanager
def watched(crawl: Crawl, columns: int = 110, lines: int = 40) -> Iterator[Terminal]:
    terminal = Terminal(crawl, columns, lines)
    try:
        yield terminal
    finally:
        terminal.close()


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatedWeb]:
    with SimulatedWeb(tmp_path_factory.mktemp("web"), hosts=4, pages=200) as made:
        yield made


@pytest.mark.long("the screen of a crawl whose Redis goes away and comes back")
def test_operator_watches_a_crawl_live(tmp_path: Path, web: SimulatedWeb) -> None:
    """Its rates, nodes, failures and hosts, in any size; what he orders shows; q ends it and the crawl goes on."""
    before = len(web.exchanges())
    with Crawl(tmp_path / "crawl", [*web.seeds, NOBODY], SETTINGS) as crawl:
        crawl.start()
        wait_until(lambda: len(web.exchanges()) > before + 10, "pages are fetched")
        begun_ms = time.time() * 1_000
        with watched(crawl) as terminal:
            terminal.wait_for("crawl test", "q ends this", "pages  ", "a second ", "partitions  4 of 4 owned")
            terminal.wait_for("most frequent failures", "robots.txt error:refused", "127.88.0.1", "worst")
            terminal.wait_for("host with most waiting", "failures", "127.16.0.1")
            terminal.resize(50, 20)
            terminal.wait_for("crawl test", "most frequent failures", "partitions  4 of 4 owned")
            wait_until(lambda: "worst" not in terminal.text, "a narrow terminal leaves out what matters least")
            terminal.resize(110, 40)
            crawl.frontier("pause")
            terminal.wait_for("standstill  it is paused; `scrapy frontier resume` lets it continue", "worst")
            terminal.press(b"xyz")
            terminal.press(b"q")
            assert terminal.wait() == 0
            assert terminal.after == terminal.before, "the terminal is as it was"
            assert b"\x1b[?1049l" in terminal.said, "and shows what stood there"
            assert "crawl test" in terminal.text, "with the last look below it"
        assert crawl.process is not None
        assert crawl.process.poll() is None
        # The sample of its end would replace the first one.
        wait_until(lambda: time.time() * 1_000 // EVERY_MS > begun_ms // EVERY_MS, "another sample's time")
        crawl.terminate()
        assert crawl.wait(300) == 0
        with watched(crawl) as terminal:
            terminal.wait_for("crawl test", "standstill  it is paused")
            terminal.process.send_signal(signal.SIGINT)
            assert terminal.wait() == 0
            assert terminal.after == terminal.before

        data = crawl.asked("top")
        assert data["status"]["crawl"] == "test"
        assert data["status"]["pages"] > 0
        assert "robots.txt error:refused" in [found["reason"] for found in data["errors"]]
        assert data["hosts"]["is_whole"]
        snapshot = crawl.frontier("top", "--once").stdout
        assert "\x1b" not in snapshot
        assert "robots.txt error:refused" in snapshot
        assert "q ends this" not in snapshot

        columns = crawl.asked("history")
        assert columns["pages"] == sorted(columns["pages"])
        assert columns["pages"][-1] == data["status"]["pages"]
        assert (columns["nodes"][0], columns["nodes"][-1]) == (1, 0)
        assert {len(values) for values in columns.values()} == {len(columns["time_s"])}
        head, *rows = crawl.frontier("history", "--rows", "3").stdout.splitlines()
        assert head.split() == [
            *("until", "pages/s", "items/s", "errors/s", "dropped/s", "new/s", "MB/s"),
            *("pages", "waiting", "ready", "nodes"),
        ]
        assert 1 <= len(rows) <= 3


@pytest.mark.long("a Redis that goes away: tests/unit/commands/looking/test_top_screen.py")
def test_screen_says_that_redis_is_away_and_goes_on(tmp_path: Path, web: SimulatedWeb) -> None:
    """The last look stays, with its age; when Redis is back, another process of it, so are the figures."""
    before = len(web.exchanges())
    with PrivateRedis() as server, Crawl(tmp_path / "crawl", web.seeds, dict(SETTINGS)) as crawl:
        crawl.settings["BIGCRAWL_REDIS_URL"] = server.url
        crawl.start()
        wait_until(lambda: len(web.exchanges()) > before + 10, "pages are fetched")
        with watched(crawl, 90, 30) as terminal:
            terminal.wait_for("crawl test", "partitions  4 of 4 owned")
            server.kill()
            terminal.wait_for("Redis does not answer", "crawl test", "s old")
            server.start()
            wait_until(lambda: "s old" not in terminal.text and "crawl test" in terminal.text, "the figures are new")
            terminal.press(b"q")
            assert terminal.wait() == 0
        server.kill()
        done = crawl.frontier("top", check=False)
        assert done.returncode == 1
        assert done.stderr.count("\n") == 1
        assert "Redis does not answer" in done.stderr
        server.start()
