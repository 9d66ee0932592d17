"""Forms and logins in Scrapy's way: what a session is worth within a process, and after it."""

from __future__ import annotations

import json
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import pytest

from tests.support.crawling.crawls import Crawl

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MEMBERS = 9
FIRST_RUN = 4
SPIDER = """
from scrapy import FormRequest, Request, Spider

class Member(Spider):
    name = "member"
    handle_httpstatus_list = [403]

    def __init__(self, login, carries="", **kwargs):
        super().__init__(**kwargs)
        self.start_urls, self.carries = [login], carries

    def parse(self, response):
        form = {"user": "ann", "password": "secret"}
        yield FormRequest.from_response(response, formdata=form, callback=self.logged_in)

    def logged_in(self, response):
        cookies = {}
        if self.carries:
            token = response.xpath("//code/text()").get()
            cookies = {"session": token}
        yield Request(response.urljoin("/members/0"), self.parse_member, cookies=cookies)

    def parse_member(self, response):
        yield {"url": response.url, "status": response.status}
        for link in response.css("a::attr(href)").getall():
            yield Request(response.urljoin(link), self.parse_member, cookies=response.request.cookies)
"""


class MembersOnly:
    """A site that shows a form with a token, and its pages to those who sent it back."""

    def __init__(self) -> None:
        self.logins: list[bool] = []
        self.sessions: set[str] = set()
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                if self.path == "/login":
                    hidden = "<input name=token type=hidden value=t7>"
                    form = f"<form method=post>{hidden}<input name=user><input name=password></form>"
                    self.answer(200, form, "seen=1; Path=/login")
                elif self.path.startswith("/members/"):
                    is_known = any(f"session={name}" in self.headers.get("Cookie", "") for name in site.sessions)
                    at = int(self.path.rpartition("/")[2])
                    onward = f"<a href=/members/{at + 1}>on</a>" if at + 1 < MEMBERS else ""
                    # The way on is shown to all, so that a crawl without a session goes on as well.
                    self.answer(200 if is_known else 403, f"<html>{onward}")
                else:
                    self.answer(404, "")

            def do_POST(self) -> None:
                sent = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
                wanted = {"token": ["t7"], "user": ["ann"], "password": ["secret"]}
                is_right = sent == wanted and "seen=1" in self.headers.get("Cookie", "")
                site.logins.append(is_right)
                name = f"s{len(site.logins)}"
                if is_right:
                    site.sessions.add(name)
                self.answer(200, f"<code>{name}</code>", f"session={name}; Path=/")

            def answer(self, status: int, text: str, cookie: str = "") -> None:
                body = text.encode()
                self.send_response(status)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(body)))
                if cookie:
                    self.send_header("Set-Cookie", cookie)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@contextmanager
def members_only() -> Iterator[MembersOnly]:
    site = MembersOnly()
    thread = threading.Thread(target=site.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield site
    finally:
        site.server.shutdown()
        site.server.server_close()
        thread.join()


class MemberCrawl(Crawl):
    """A crawl of the spider above."""

    def command(self) -> list[str]:
        arguments = [word for name, value in self.arguments.items() for word in ("-a", f"{name}={value}")]
        return [sys.executable, "-m", "scrapy", "crawl", "member", *arguments, *self.options()]


@pytest.mark.parametrize("carries", [False, True])
def test_session_lasts_as_long_as_its_process_unless_requests_carry_it(
    tmp_path: Path, redis_url: str, crawl_name: str, carries: bool
) -> None:
    """The form is sent once, with hidden fields and cookies. A jar ends with its process; cookies of requests last."""
    (tmp_path / "member.py").write_text(SPIDER)
    items = tmp_path / "items.jsonl"
    settings: dict[str, Any] = {
        "BIGCRAWL_REDIS_URL": redis_url,
        "BIGCRAWL_PARTITIONS": 4,
        "BIGCRAWL_HOST_DELAY": 0,
        "BIGCRAWL_REPORT_DIR": None,
        "SPIDER_MODULES": "member",
        "FEEDS": json.dumps({str(items): {"format": "jsonlines"}}),
        "CONCURRENT_REQUESTS": 1,
    }
    with members_only() as site:
        arguments = {"login": f"{site.url}/login", **({"carries": "1"} if carries else {})}
        environment = {"PYTHONPATH": str(tmp_path)}
        crawl = MemberCrawl(
            tmp_path / "crawl", [], settings, name=crawl_name, arguments=arguments, environment=environment
        )
        with crawl:
            crawl.start(CLOSESPIDER_ITEMCOUNT=FIRST_RUN)
            assert crawl.wait(300) == 0, crawl.log.read_text()
            before = len(items.read_text().splitlines())
            assert FIRST_RUN <= before < MEMBERS
            assert crawl.run() == 0
            assert "Traceback" not in crawl.log.read_text()
        assert site.logins == [True]
    statuses = [json.loads(line)["status"] for line in items.read_text().splitlines()]
    assert len(statuses) == MEMBERS
    assert set(statuses[:before]) == {200}
    assert set(statuses[before:]) == ({200} if carries else {403})
