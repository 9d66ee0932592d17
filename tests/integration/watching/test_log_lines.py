"""The log of a real crawl of hosts that fail: as JSON, without ERRORs, with stats for those who mail or read them."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from datetime import datetime, timedelta
from typing import IO, TYPE_CHECKING, Any, Self

import pytest

from tests.integration.hosts.test_backoff import Answer, serving
from tests.support.crawling.crawls import Crawl, SimulatedWeb
from tests.support.running import warm

if TYPE_CHECKING:
    from pathlib import Path


TIMEOUT_S = 10  # a busy machine answers sooner


class MailServer:
    """Takes mail by SMTP on a loopback address, one session at a time, and keeps the text."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.25", 0))
        self.port = self._socket.getsockname()[1]
        self.mails: list[str] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(10)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection, connection.makefile("rb") as file:
                self._talk(file, connection)

    def _talk(self, file: IO[bytes], connection: socket.socket) -> None:
        def say(text: str) -> None:
            connection.sendall(text.encode() + b"\r\n")

        say("220 mail")
        while line := file.readline():
            word = line.split()[0].upper() if line.split() else b""
            if word == b"DATA":
                say("354 go on")
                text = b""
                while (part := file.readline()) != b".\r\n":
                    text += part
                self.mails.append(text.decode())
            say("221 bye" if word == b"QUIT" else "250 ok")


def log_of(path: Path) -> list[dict[str, Any]]:
    """Every line is an object; what is not fails here."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def bad_answer(path: str) -> Answer:
    """A page that is busy, one that is broken, and one that takes too long; all else is well."""
    if path == "/slow":
        time.sleep(3 * TIMEOUT_S)
    return {"/busy": (503, {}), "/broken": (500, {})}.get(path, (200, {}))


@pytest.mark.long("all lines of a crawl, beside Scrapy's: tests/unit/extensions")
def test_each_line_is_an_object_and_expected_answers_are_no_errors(tmp_path: Path) -> None:
    """From the first line to the last, Scrapy's too; nothing that a page or a host may do raises an alarm.

    Bodies that break are among the pages of the crawls in `test_terminal`.
    """
    settings = {"BIGCRAWL_PARTITIONS": 4, "BIGCRAWL_HOST_DELAY": 0.2, "LOG_FORMAT": "json", "BIGCRAWL_BACKOFF": 0.5}
    settings |= {"BIGCRAWL_BACKOFF_MAX": 1, "BIGCRAWL_LAST_FAILURES_MAX": 2, "BIGCRAWL_HOST_FAILURES_MAX": 3}
    settings |= {"DOWNLOAD_TIMEOUT": TIMEOUT_S, "RETRY_TIMES": 1}
    with SimulatedWeb(tmp_path / "web", hosts=3, pages=12) as web, serving("127.0.62.9", bad_answer) as bad:
        seeds = [*web.seeds, "http://127.88.0.1:9/nobody/listens", f"{web.seeds[0]}no/such/page"]
        seeds += bad.urls("/good", "/busy", "/broken", "/slow")
        with Crawl(tmp_path / "crawl", seeds, settings) as crawl:
            assert crawl.run() == 0
            lines = log_of(crawl.log)
            assert "Scrapy" in lines[0]["message"]
            assert "started (bot: bigcrawl)" in lines[0]["message"]
            messages = [line["message"] for line in lines]
            assert "Spider closed (finished)" in messages
            assert any("crawl test: finished" in message for message in messages), "the summary is a line, too"
            assert {line["logger"].partition(".")[0] for line in lines} >= {"scrapy", "bigcrawl"}
            assert all(datetime.fromisoformat(line["time"]).utcoffset() == timedelta(0) for line in lines)
            [last] = [line for line in lines if line["message"].startswith("Spider closed")]
            assert (last["crawl"], last["spider"]) == ("test", "broad")
            assert last["node"]
            assert [line for line in lines if line["level"] in ("ERROR", "CRITICAL") or "exc" in line] == []
            ended = {reason["reason"] for reason in crawl.asked("errors")["errors"]}
            assert ended >= {"status:503", "status:500", "status:404", "error:timeout", "robots.txt error:refused"}

            log = tmp_path / "log.jsonl"
            crawl.start(LOG_FILE=log)
            assert crawl.wait(300) == 0
            assert crawl.log.read_text() == "", "nothing is written elsewhere"
            assert any("is finished" in line["message"] for line in log_of(log))
            assert "crawl test" in crawl.frontier("status").stdout, "commands have no log"


PROJECT = """
import scrapy
from scrapy import signals


class OwnSpider(scrapy.Spider):
    name = "own"

    @classmethod
    def from_crawler(cls, crawler, *args, **kwargs):
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.record_end, signals.spider_closed)
        return spider

    async def start(self):
        for url in self.seeds.split():
            yield scrapy.Request(url)

    def parse(self, response):
        yield from response.follow_all(css="a")

    def record_end(self, reason):
        stats = self.crawler.stats.get_stats()
        names = sorted(name for name in stats if name.startswith("bigcrawl/"))
        self.logger.info("handler: %s %s %s", reason, stats["response_received_count"], " ".join(names))
"""


@pytest.mark.long("lines that are objects, of a crawl with the same handlers")
def test_mailed_stats_and_handlers_see_the_final_figures(tmp_path: Path) -> None:
    """StatsMailer mails Scrapy's and bigcrawl's figures as they are at the end; so does a handler of spider_closed."""
    (tmp_path / "own.py").write_text(PROJECT)
    with SimulatedWeb(tmp_path / "web", hosts=2, pages=8) as web, MailServer() as mail:
        settings = {
            "ADDONS": '{"bigcrawl.addon.Addon": 500}',
            "BIGCRAWL_STATE_DIR": tmp_path / "state",
            "BIGCRAWL_WARC_DIR": "",
            "BIGCRAWL_ALLOW_PRIVATE_ADDRESSES": 1,
            "BIGCRAWL_SERVER_DELAY": 0,
            "BIGCRAWL_HOST_DELAY": 0.1,
            "EXTENSIONS": '{"scrapy.extensions.statsmailer.StatsMailer": 500}',
            "STATSMAILER_RCPTS": "operator@example.com",
            "MAIL_HOST": "127.0.0.25",
            "MAIL_PORT": mail.port,
            "LOG_LEVEL": "INFO",
        }
        words = [word for name, value in settings.items() for word in ("-s", f"{name}={value}")]
        command = ["scrapy", "runspider", "own.py", "-a", f"seeds={' '.join(web.seeds)}", *words]
        done = warm.run(command, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        served = len([each for each in web.exchanges() if each.target != "/robots.txt"])
    [line] = [line for line in done.stderr.splitlines() if "handler: finished" in line]
    answers = int(line.partition("handler: finished ")[2].split()[0])
    assert 10 < answers <= served, "some answers of this web are faulty"
    assert "bigcrawl/fetches/limit" in line
    [text] = mail.mails
    assert "operator@example.com" in text
    assert re.search(r"^bigcrawl/fetches/limit +: \d+\r$", text, re.MULTILINE)
    assert re.search(rf"^response_received_count +: {answers}\r$", text, re.MULTILINE)
