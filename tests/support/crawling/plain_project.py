"""A Scrapy project that knows nothing of bigcrawl but some lines of its settings, and a server that takes notes."""

from __future__ import annotations

import itertools
import json
import math
import os
import signal
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tests.support.running import warm
from tests.support.running.processes import connected_to, wait_until
from tests.support.servers.arrivals import arrived_s

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Mapping, Sequence

REPOSITORY = Path(__file__).parents[3]

ROBOTS = {
    "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None,
    "bigcrawl.middlewares.robots.RobotsMiddleware": 100,
}
THROTTLE = {"bigcrawl.middlewares.throttle.ThrottleMiddleware": 950}
QUEUE = "bigcrawl.middlewares.polite_queue.PoliteQueue"

SETTINGS = """
import json
from pathlib import Path

BOT_NAME = "plain"
SPIDER_MODULES = ["plain.spiders"]
TELNETCONSOLE_ENABLED = False
REMOTE_CONTROL_ENABLED = False
COOKIES_ENABLED = False  # their first use would look for the public suffix list on the network
USER_AGENT = "plainbot/1.0 (+http://127.0.0.1/)"
globals().update(json.loads(Path(__file__).with_name("settings.json").read_text()))
"""

SPIDER = """
import scrapy


class Plain(scrapy.Spider):
    name = "plain"

    async def start(self):
        for url in self.urls.split():
            yield scrapy.Request(url, errback=self.failed, meta=dict(self.settings.getdict("META")))

    def parse(self, response):
        yield {"url": response.url, "status": response.status}

    def failed(self, failure):
        yield {"url": failure.request.url, "error": type(failure.value).__name__}
"""


@dataclass(frozen=True)
class Answer:
    """What a path is answered with."""

    status: int = 200
    body: bytes = b"page"
    headers: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0


@dataclass(frozen=True)
class Visit:
    """One request as the server saw it; seconds on the monotonic clock."""

    host: str
    path: str
    start: float
    end: float


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A crawler that was killed is no news."""


class NotedSite:
    """Answers as it is told, by `host/path` or path, and notes who came when; robots.txt is absent unless told.

    Use it on any 127.x.y.z address: `site.url("127.0.0.2", "/a")`.
    """

    def __init__(self, answers: Mapping[str, Answer | Callable[[int], Answer]] | None = None) -> None:
        self.visits: list[Visit] = []
        self.answers = dict(answers or {})
        self._pages_max = math.inf
        self._changed = threading.Condition()
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                site._answer(self)

            def log_message(self, *_: Any) -> None:
                pass

        # Linux gives a socket on 127.0.0.1 its own address alone, so each address has a server, on one port.
        self._handler = Handler
        self._servers: dict[str, ThreadingHTTPServer] = {}
        self._threads: list[threading.Thread] = []
        self._listen("127.0.0.1", 0)
        self.port = self._servers["127.0.0.1"].server_port

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._answer_at_most(math.inf)
        for server in self._servers.values():
            server.shutdown()
            server.server_close()
        for thread in self._threads:
            thread.join()

    def url(self, address: str, path: str, name: str = "") -> str:
        """The URL of a path at an address, which is listened on from now; `name` stands for it in the URL."""
        if address not in self._servers:
            self._listen(address, self.port)
        return f"http://{name or address}:{self.port}{path}"

    def paths(self, host: str = "") -> list[str]:
        """What was asked for, in order; of one host or of all."""
        return [visit.path for visit in self.visits if host in ("", visit.host)]

    def rests(self, host: str) -> list[float]:
        """Seconds between the end of each fetch of a host and the start of the next."""
        visits = [visit for visit in self.visits if visit.host == host]
        return [after.start - before.end for before, after in itertools.pairwise(visits)]

    def hold_after(self, pages: float) -> None:
        """Answer `pages` more, and let further requests wait, but for those that come at once; infinity ends it.

        A crawl is not over then, however late it is killed.
        """
        self._answer_at_most(self._pages + pages)

    def settle(self) -> None:
        """Answer all that a crawler has asked for which was killed: then `visits` has all of it."""
        self._answer_at_most(math.inf)
        wait_until(lambda: not connected_to(self.port), "all that was asked for is answered")

    @property
    def _pages(self) -> int:
        return sum(visit.path != "/robots.txt" for visit in self.visits)

    def _answer_at_most(self, pages: float) -> None:
        with self._changed:
            self._pages_max = pages
            self._changed.notify_all()

    def _listen(self, address: str, port: int) -> None:
        server = self._servers[address] = _Server((address, port), self._handler)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        self._threads.append(thread)
        thread.start()

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        start, host = arrived_s(handler.connection), handler.headers["Host"].partition(":")[0]
        known = self.answers.get(host + handler.path, self.answers.get(handler.path))
        if callable(known):
            known = known(self.paths(host).count(handler.path))
        answer = known or Answer(404 if handler.path == "/robots.txt" else 200)
        if handler.path != "/robots.txt":
            with self._changed:
                self._changed.wait_for(lambda: self._pages < self._pages_max)
        time.sleep(answer.seconds)
        handler.send_response(answer.status)
        handler.send_header("Content-Type", "text/plain")
        handler.send_header("Content-Length", str(len(answer.body)))
        for name, value in answer.headers.items():
            handler.send_header(name, value)
        handler.end_headers()
        # Before the last byte: the client cannot have the answer earlier.
        self.visits.append(Visit(host, handler.path, start, time.monotonic()))
        handler.wfile.write(answer.body)


class PlainProject:
    """`scrapy crawl plain` in a directory of its own, as often as it takes. A subclass may have another spider."""

    spider = "plain"
    source = SPIDER

    def __init__(self, directory: Path, **settings: Any) -> None:
        self.directory = directory
        package = directory / "plain"
        (package / "spiders").mkdir(parents=True)
        (directory / "scrapy.cfg").write_text("[settings]\ndefault = plain.settings\n")
        (package / "__init__.py").touch()
        (package / "settings.py").write_text(SETTINGS)
        (package / "settings.json").write_text(json.dumps(settings))
        (package / "spiders" / "__init__.py").write_text(self.source)
        self.process: subprocess.Popen[bytes] | None = None
        self.starts = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process is not None and self.process.poll() is None:
            self.kill()

    def start(self, *urls: str, output: Sequence[str] = (), **settings: Any) -> None:
        """Start a crawl of the URLs; the settings are those of the command line, `output` Scrapy's words for feeds."""
        self.starts += 1
        command = ["scrapy", "crawl", self.spider, "-a", f"urls={' '.join(urls)}"]
        command += output or ["-O", str(self._items)]
        command += [word for name, value in settings.items() for word in ("-s", f"{name}={value}")]
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
        environment.pop("SCRAPY_SETTINGS_MODULE", None)
        with self._log.open("wb") as log:
            self.process = warm.start(command, cwd=self.directory, env=environment, stdout=log, stderr=log)

    def wait(self, timeout_s: float = 300) -> int:
        """Wait for the end; the exit status."""
        assert self.process is not None
        return self.process.wait(timeout_s)

    def kill(self) -> None:
        """kill -9, by process id."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def run(self, *urls: str, output: Sequence[str] = (), timeout_s: float = 300, **settings: Any) -> str:
        """Crawl to the end; the log."""
        self.start(*urls, output=output, **settings)
        self.wait(timeout_s)
        return self.log

    def interrupt(self) -> None:
        """Ctrl-C, once."""
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)

    @property
    def log(self) -> str:
        """What the latest crawl has said so far."""
        return self._log.read_text()

    @property
    def items(self) -> dict[str, int | str]:
        """Status, or name of the error, by URL."""
        rows = json.loads(self._items.read_text() or "[]")
        return {row["url"]: row.get("status") or row["error"] for row in rows}

    def stat(self, key: str) -> int:
        """A number from the stats at the end of the log; 0 where there is none."""
        lines = [line for line in self.log.splitlines() if f"'{key}':" in line]
        return int(lines[-1].rpartition(":")[2].strip(" ,}")) if lines else 0

    @property
    def _log(self) -> Path:
        return self.directory / f"log{self.starts}.txt"

    @property
    def _items(self) -> Path:
        return self.directory / f"items{self.starts}.json"
