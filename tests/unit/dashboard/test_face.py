"""Requests and answers, byte by byte: sizes, methods, headers, errors."""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from twisted.internet.testing import StringTransport

from bigcrawl.commands.running import data_of_action
from bigcrawl.config import read_config
from bigcrawl.dashboard import face as module
from bigcrawl.dashboard.face import BODY_MAX, DashboardSite
from bigcrawl.dashboard.files import page_files
from bigcrawl.exceptions import ConfigError, CorruptionError, TransientStoreError
from tests.support.planted import ESCAPES, PLANTED, assert_is_plain

if TYPE_CHECKING:
    from bigcrawl.dashboard.actions import ActionCall

TOKEN = "0123456789abcdef"  # noqa: S105 - of this test
ORIGIN = "http://127.0.0.1:9430"


class Reply:
    """A parsed answer."""

    def __init__(self, raw: bytes) -> None:
        head, _, body = raw.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        self.status = int(lines[0].split()[1])
        self.headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
        if self.headers.get("transfer-encoding") == "chunked":
            body = b"".join(re.findall(rb"[0-9a-f]+\r\n(.+?)\r\n", body, re.DOTALL))
        self.body = body

    @property
    def error(self) -> str:
        return str(json.loads(self.body)["error"])


class Noticing(StringTransport):
    """Notices the end of an answer."""

    def __init__(self) -> None:
        super().__init__()
        self.is_answered = asyncio.Event()

    def _look(self) -> None:
        head, _, body = self.value().partition(b"\r\n\r\n")
        if body.endswith(b"0\r\n\r\n") if b"Transfer-Encoding: chunked" in head else head:
            self.is_answered.set()

    def write(self, data: bytes) -> None:
        super().write(data)
        self._look()

    def writeSequence(self, data: Any) -> None:  # noqa: N802 - Twisted's name
        super().writeSequence(data)
        self._look()


def asked(raw: bytes, **settings: Any) -> Reply:
    """What the site answers to a request, as it is written."""

    async def ask() -> bytes:
        site = DashboardSite(read_config({"BIGCRAWL_DASHBOARD_TOKEN": TOKEN, **settings}), data_of_action)
        site.start()
        transport = Noticing()
        protocol = site.buildProtocol(None)
        protocol.makeConnection(transport)
        protocol.dataReceived(raw)
        await transport.is_answered.wait()
        protocol.connectionLost(None)
        await site.stop()
        return bytes(transport.value())

    return Reply(asyncio.run(asyncio.wait_for(ask(), 60)))


def request(method: str, path: str, body: bytes = b"", **headers: str) -> bytes:
    named = {"Host": "127.0.0.1:9430", **{name.replace("_", "-"): value for name, value in headers.items()}}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in named.items())]
    return "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body


def post(path: str, body: bytes, token: str = TOKEN) -> bytes:
    return request("POST", path, body, Origin=ORIGIN, Content_Type="application/json", Authorization=f"Bearer {token}")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[ActionCall]:
    """Which actions are run; each says its own name, or fails as its word says."""
    errors = {
        "away": TransientStoreError("Redis is away"),
        "wrong": ConfigError("no such host"),
        "bug": ValueError("x"),
    }
    errors["torn"] = CorruptionError("p0000/manifest", 7, "a", "b")
    made: list[ActionCall] = []

    def run(_config: object, call: ActionCall, _act: object) -> dict[str, Any]:
        made.append(call)
        for word in call.words:
            if word in errors:
                raise errors[word]
        return {"name": call.name}

    monkeypatch.setattr(module, "run_action", run)
    return made


def test_page_and_its_files_are_served_with_strict_headers() -> None:
    for path, file in {"/": page_files()["/index.html"], **page_files()}.items():
        reply = asked(request("GET", path))
        assert (reply.status, reply.body) == (200, file.body)
        assert reply.headers["content-type"] == file.content_type
        assert "default-src 'none'; script-src 'self'; style-src 'self'" in reply.headers["content-security-policy"]
        assert "unsafe" not in reply.headers["content-security-policy"]
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["cache-control"] == "no-store"


def test_page_loads_nothing_from_elsewhere_and_runs_nothing_inline() -> None:
    """All of it together is a small part of the five megabytes that it may have."""
    files = page_files()
    html = files["/index.html"].body.decode()
    for address in re.findall(r'(?:src|href)="([^"]*)"', html):
        assert address in files or address.startswith(("#", "data:,"))
    assert not re.search(r"\son\w+=|style=|<style|javascript:", html)
    assert all(re.search(r'src="', tag) for tag in re.findall(r"<script[^>]*>", html))
    for path, file in files.items():
        if not path.startswith("/plots"):
            assert b"http://" not in file.body.replace(b"https://", b"http://"), path
            assert b"innerHTML" not in file.body, path
            for module_path in re.findall(rb'from "\.(/[^"]+)"', file.body):
                assert module_path.decode() in files
    assert sum(len(file.body) for file in files.values()) < 200_000


def test_each_file_is_loaded_by_the_page_or_by_a_module_of_it() -> None:
    texts = {path: file.body.decode() for path, file in page_files().items()}
    reached, left = set[str](), ["/index.html"]
    while left:
        reached.add(path := left.pop())
        left += [named for named in texts if named not in reached and f'"{named}"' in texts[path].replace('"./', '"/')]
    assert reached == set(texts)


def test_every_label_names_an_input_of_the_page() -> None:
    html = page_files()["/index.html"].body.decode()
    inputs = set(re.findall(r'<(?:input|select)[^>]* id="([^"]+)"|<(?:input|select) id="([^"]+)"', html))
    assert {one or other for one, other in inputs} == set(re.findall(r'<label for="([^"]+)"', html))


def test_an_action_is_run_and_its_result_is_the_answer(calls: list[ActionCall]) -> None:
    reply = asked(request("GET", "/api/host?word=a.example"))
    assert (reply.status, json.loads(reply.body)) == (200, {"name": "host"})
    reply = asked(post("/api/pause", b'{"words": ["a.example"]}'))
    assert (reply.status, json.loads(reply.body)) == (200, {"name": "pause"})
    assert [(call.name, call.words) for call in calls] == [("host", ("a.example",)), ("pause", ("a.example",))]


@pytest.mark.parametrize(
    ("word", "status", "text"),
    [
        ("away", 503, "Redis is away"),
        ("wrong", 400, "no such host"),
        ("torn", 500, "p0000/manifest: damaged"),
        ("bug", 500, "the log of the node says why"),
    ],
)
def test_a_failure_is_one_line(calls: list[ActionCall], word: str, status: int, text: str) -> None:
    reply = asked(request("GET", f"/api/host?word={word}"))
    assert reply.status == status
    assert text in reply.error
    assert "\n" not in reply.error


@pytest.mark.parametrize(
    ("raw", "status", "text"),
    [
        (request("GET", "/else"), 404, "the dashboard is at /"),
        (request("GET", "/dashboard.js/../../config.py"), 404, "no such page"),
        (request("GET", "/api/delete"), 404, "there are: status, "),
        (request("GET", "/api/pause"), 404, "GET knows no action 'pause'"),
        (post("/api/drain", b""), 404, "there are: pause, "),
        (post("/api/status", b""), 404, "there are: pause, "),
        (post("/", b""), 404, "no such page"),
        (request("PUT", "/api/pause"), 405, "use GET or POST"),
        (request("OPTIONS", "/api/pause"), 405, "use GET or POST"),
        (request("GET", "/api/hosts?limit=x"), 400, "limit is 'x'; must be a number"),
        (request("GET", "/api/hosts?word=" + "a" * 9000), 414, "longer than 8,192 bytes"),
        (post("/api/pause", b"{"), 400, "the body is not JSON"),
        (post("/api/pause", b"{}", "wrong" * 5), 401, "token is missing or wrong"),
        (request("GET", "/api/status", Host="evil.example"), 403, "Host header"),
        (request("GET", "/", Host="evil.example"), 403, "Host header"),
    ],
)
def test_a_wrong_request_gets_one_line_and_runs_nothing(
    calls: list[ActionCall], raw: bytes, status: int, text: str
) -> None:
    reply = asked(raw)
    assert reply.status == status
    assert text in reply.error
    assert TOKEN not in str(reply.headers) + reply.error
    assert not calls


@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_long_body_ends_the_connection(calls: list[ActionCall], is_chunked: bool) -> None:
    """Whether its length is told or not."""
    body = b'{"words": ["' + b"a" * BODY_MAX + b'"]}'
    raw = post("/api/pause", body)
    if is_chunked:
        head = post("/api/pause", b"").replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
        raw = head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    assert asked(raw).status == 413
    assert not calls


def test_headers_have_a_bound(calls: list[ActionCall]) -> None:
    assert asked(request("GET", "/api/status", X="a" * 9_000, Y="a" * 9_000)).status == 400
    assert not calls


def test_access_says_what_a_token_permits() -> None:
    """Also to whoever may not look; it says nothing of the crawl."""
    away = {"BIGCRAWL_DASHBOARD_ORIGIN": "https://crawl.example"}
    assert asked(request("GET", "/api/status"), **away).status == 401
    none = json.loads(asked(request("GET", "/api/access"), **away).body)
    assert none == {"may_look": False, "may_change": False, "has_token": True}
    both = json.loads(asked(request("GET", "/api/access", Authorization=f"Bearer {TOKEN}"), **away).body)
    assert both == {"may_look": True, "may_change": True, "has_token": True}


@pytest.mark.parametrize(
    "request_of",
    [
        "{} / HTTP/1.1\r\nHost: 127.0.0.1:9430\r\n\r\n",
        "GET /api/{} HTTP/1.1\r\nHost: 127.0.0.1:9430\r\n\r\n",
        "GET /api/host?word={} HTTP/1.1\r\nHost: 127.0.0.1:9430\r\n\r\n",
        "GET /api/status?{}=1 HTTP/1.1\r\nHost: 127.0.0.1:9430\r\n\r\n",
        "GET /api/status HTTP/1.1\r\nHost: {}\r\nOrigin: {}\r\n\r\n",
    ],
)
def test_what_a_client_plants_acts_neither_in_the_answer_nor_in_the_log(
    request_of: str, caplog: pytest.LogCaptureFixture
) -> None:
    """As bytes, and as the escapes of a URL."""
    sent = ESCAPES.replace("\r", "").replace(" ", "")
    for spelled in (sent, quote(PLANTED)):
        body = asked(request_of.format(spelled, spelled).encode()).body
        assert_is_plain(body.decode())
    assert [record for record in caplog.records if "\x1b" in record.getMessage()] == []
