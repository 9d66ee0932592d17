"""Stock Scrapy with DrumDupeFilter against a real server: stopped, killed and resumed, it requests what it should."""

from __future__ import annotations

import signal
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

import pytest

from tests.support.running import warm
from tests.support.running.processes import wait_until

if TYPE_CHECKING:
    from pathlib import Path

AHEAD = 10
# Every page links to the same pages, in part: most links are duplicates.
SPIDER = """
import scrapy

class Linked(scrapy.Spider):
    name = "linked"
    custom_settings = {
        "DUPEFILTER_CLASS": "bigcrawl.scheduler.dupefilter.DrumDupeFilter",
        "CONCURRENT_REQUESTS_PER_DOMAIN": 4,
        "DOWNLOAD_DELAY": 0,
        "TELNETCONSOLE_ENABLED": False,
        "ROBOTSTXT_OBEY": False,
    }

    async def start(self):
        yield scrapy.Request(self.origin + "/0", dont_filter=True)

    def parse(self, response):
        for href in response.css("a::attr(href)").getall():
            yield response.follow(href)
"""


class Pages:
    """A server of so many pages that counts what it is asked for, and answers at most `answers_max` pages."""

    def __init__(self, count: int) -> None:
        self.asked: Counter[str] = Counter()
        self.answers_max = self._count = count
        self._changed = threading.Condition()
        pages = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                pages.asked[self.path] += 1
                with pages._changed:
                    pages._changed.wait_for(lambda: len(pages.asked) <= pages.answers_max)
                number = int(self.path[1:])
                links = [(number * 7 + step) % count for step in range(1, 13)]
                body = "".join(f'<a href="/{link}#here">x</a>' for link in links).encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.origin = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.let_go()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def let_go(self) -> None:
        """Answer whatever is asked for."""
        with self._changed:
            self.answers_max = self._count
            self._changed.notify_all()


class Job:
    """`scrapy runspider` with a job directory, started as often as it takes."""

    def __init__(self, directory: Path, pages: Pages) -> None:
        self.directory = directory
        self._pages = pages
        (directory / "linked.py").write_text(SPIDER)

    def run_until(self, asked: int, how: signal.Signals) -> str:
        """Crawl until the server has been asked for so many pages, then end it; return its log.

        However late it is ended, it is not at its end: the server answers few more until then.
        """
        self._pages.answers_max = asked + AHEAD
        return self._run(asked, how)

    def run(self) -> str:
        """Crawl to the end; return the log."""
        return self._run(0, None)

    def _run(self, asked: int, how: signal.Signals | None) -> str:
        log = self.directory / "log"
        words = ["scrapy", "runspider", "linked.py", "-s", "JOBDIR=job", "-a", f"origin={self._pages.origin}"]
        process = warm.start([*words, "--logfile", log], cwd=self.directory)
        try:
            if how is not None:
                is_under_way = lambda: len(self._pages.asked) > asked or process.poll() is not None  # noqa: E731
                wait_until(is_under_way, "a crawl under way")
                process.send_signal(how)
                self._pages.let_go()
            process.wait(timeout=300)
        finally:
            process.kill()
            process.wait()
        text = log.read_text()
        log.unlink()
        assert "Traceback" not in text, text
        return text


@pytest.mark.long("a job that stops; the one that is killed is tried here, too")
def test_a_job_that_is_stopped_and_resumed_requests_each_page_once(tmp_path: Path) -> None:
    """Stopped twice as Ctrl-C does and run to its end, no page is asked for twice and none is left out."""
    count = 200
    with Pages(count) as pages:
        job = Job(tmp_path, pages)
        job.run_until(60, signal.SIGINT)
        first = len(pages.asked)
        assert first < count
        job.run_until(first + 60, signal.SIGINT)
        assert len(pages.asked) < count
        log = job.run()
    # The seed is not filtered, and so asked for by each start.
    assert pages.asked.pop("/0") >= 1
    assert set(pages.asked) == {f"/{number}" for number in range(1, count)}
    assert max(pages.asked.values()) == 1
    assert "'dupefilter/filtered'" in log
    assert (tmp_path / "job" / "requests.drum" / "MANIFEST").exists()
    assert not (tmp_path / "job" / "requests.seen").exists()


def test_a_killed_job_forgets_few_requests(tmp_path: Path) -> None:
    """After kill -9 the filter still knows all requests but those that came last, fewer than a record of its log."""
    from bigcrawl.drum.key_set import LOG_KEYS, KeySet

    with Pages(400) as pages:
        job = Job(tmp_path, pages)
        job.run_until(300, signal.SIGKILL)
        asked = len(pages.asked)
    known = len(KeySet(tmp_path / "job" / "requests.drum"))
    assert asked - known < LOG_KEYS
    assert known >= LOG_KEYS
