"""The jobs of a scrapyd, one that answers, one that does not, and one that answers anything."""

from __future__ import annotations

import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.commands.looking.activity import jobs_text
from bigcrawl.config import read_config
from bigcrawl.exceptions import ConfigError
from bigcrawl.views.activity import jobs as jobs_module
from bigcrawl.views.activity.jobs import BYTES_MAX, read_jobs

if TYPE_CHECKING:
    from collections.abc import Iterator

LOGIN = "me:s3cret"
JOBS = {
    "status": "ok",
    "pending": [{"id": "c", "spider": "broad"}],
    "running": [{"id": "b", "spider": "broad\x1b", "start_time": "2026-11-30 06:00:00.5"}],
    "finished": [
        {"id": "a", "spider": "broad", "start_time": "2026-11-29 06:00:00", "end_time": "2026-11-29 07:00:00"}
    ],
}


class Scrapyd(ThreadingHTTPServer):
    """Answers with what the test sets, to whoever knows the password."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: dict[str, bytes] = {
            "/listprojects.json": json.dumps({"status": "ok", "projects": ["trial"]}).encode(),
            "/listjobs.json?project=trial": json.dumps(JOBS).encode(),
        }
        self.redirect = ""
        self.url = f"http://{LOGIN}@127.0.0.1:{self.server_address[1]}/"


class _Handler(BaseHTTPRequestHandler):
    server: Scrapyd

    def do_GET(self) -> None:
        body = self.server.answers.get(self.path)
        is_known = self.headers["Authorization"] == f"Basic {base64.b64encode(LOGIN.encode()).decode()}"
        self.send_response(302 if self.server.redirect else 200 if is_known and body is not None else 401)
        if self.server.redirect:
            self.send_header("Location", self.server.redirect)
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, *_: Any) -> None:
        """Tests have no log."""


@pytest.fixture
def scrapyd() -> Iterator[Scrapyd]:
    with Scrapyd() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def asked(url: str | None) -> dict[str, Any]:
    return read_jobs(read_config({"BIGCRAWL_DASHBOARD_SCRAPYD": url}))


def test_jobs_are_listed_with_their_states_and_times(scrapyd: Scrapyd) -> None:
    """Running ones first; nothing says the password."""
    found = asked(scrapyd.url)
    assert [(job["job"], job["state"]) for job in found["jobs"]] == [
        ("b", "running"),
        ("c", "pending"),
        ("a", "finished"),
    ]
    running, pending, finished = found["jobs"]
    assert finished["end"] - finished["start"] == 3_600
    assert (running["end"], pending["start"], running["spider"]) == (None, None, "broad\\x1b")
    assert found["error"] is None
    assert "s3cret" not in json.dumps(found)
    assert "running" in jobs_text(found)
    assert max(map(len, jobs_text(found).splitlines())) <= 80


def test_nothing_is_asked_where_none_is_named() -> None:
    """And the text says which setting names one."""
    found = asked(None)
    assert found == {"scrapyd": None, "jobs": [], "error": None}
    assert "BIGCRAWL_DASHBOARD_SCRAPYD" in jobs_text(found)


@pytest.mark.parametrize(
    "answer", [b"", b"<html>", b"[]", b'{"status": "error"}', b'{"status": "ok"}', b'{"status": "ok", "projects": 7}']
)
def test_any_other_answer_is_a_line(scrapyd: Scrapyd, answer: bytes) -> None:
    """Also one that is too large, or that leads elsewhere with the password."""
    scrapyd.answers["/listprojects.json"] = answer
    assert asked(scrapyd.url)["error"].startswith("scrapyd at http://127.0.0.1:")
    scrapyd.answers["/listprojects.json"] = b" " * (BYTES_MAX + 1)
    assert "bytes" in asked(scrapyd.url)["error"]
    scrapyd.redirect = "http://127.0.0.1:9/"
    assert "s3cret" not in asked(scrapyd.url)["error"]


def test_scrapyd_that_is_not_there_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is slow, too."""
    assert "does not answer" in asked("http://127.0.0.1:9/")["error"]
    monkeypatch.setattr(jobs_module, "ALL_S", -1.0)
    assert "too slowly" in asked("http://127.0.0.1:9/")["error"]


@pytest.mark.parametrize("url", ["scrapyd:6800", "ftp://a.example/", "http://", "http://a.example:x/", "http://a/?x=1"])
def test_what_is_no_server_is_refused_at_the_start(url: str) -> None:
    with pytest.raises(ConfigError, match=r"http://127\.0\.0\.1:6800"):
        asked(url)
