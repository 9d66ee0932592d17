"""What the downloader says of requests, and what it is told."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from scrapy import Request, Spider
from scrapy.exceptions import DownloadFailedError, DownloadTimeoutError
from scrapy.http import HtmlResponse, Response

from tests.support.observing import NO_OBSERVERS
from tests.unit.scheduler.records.test_held_urls import held_url
from tests.unit.scheduler.test_scheduler import new_scheduler

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.scheduler.records.held import HeldUrl


@pytest.mark.parametrize(
    ("error", "has_begun", "noted"), [("timeout", True, 1), ("timeout", False, 0), ("lost", True, 0)]
)
def test_time_that_ran_out_tells_of_a_crowd_where_an_answer_had_begun(
    tmp_path: Path, error: str, *, has_begun: bool, noted: int
) -> None:
    """A server that never said a word may be dead, and a lost connection has no time: neither counts, all are over."""
    frontier = new_scheduler(tmp_path)
    times: list[tuple[str, int]] = []
    over: list[HeldUrl] = []
    crowd = SimpleNamespace(record_answer=lambda host, took_ms: times.append((host, took_ms)))
    fetches = SimpleNamespace(record_answered=lambda held, _: over.append(held))
    handout = SimpleNamespace(crowd=crowd, fetches=fetches, lease=SimpleNamespace(is_valid=True))
    frontier.attach(cast("Any", SimpleNamespace(handout=handout)), Spider(name="test"))
    request = Request("http://a.example/", meta={"download_latency": 0.1} if has_begun else {})
    held = held_url(1)
    frontier.started.record_start(request, held)
    failure = DownloadTimeoutError("3 s") if error == "timeout" else DownloadFailedError("reset")
    frontier.started.record_failure(request, failure, 3_000)
    assert times == [(held.host, 3_000)] * noted
    assert over == [held]


def test_an_answer_is_noted_as_it_came(tmp_path: Path) -> None:
    """Only of the frontier's own requests; its body with status 200 and if there is one."""
    frontier = new_scheduler(tmp_path)
    noted: list[tuple[HeldUrl, bytes]] = []
    answers: list[tuple[int, Any, int]] = []
    node: Any = SimpleNamespace(
        handout=SimpleNamespace(
            fetches=SimpleNamespace(record_answered=lambda *_: None), lease=SimpleNamespace(is_valid=False)
        ),
        observers=SimpleNamespace(
            record_headers=lambda *answer: answers.append(answer),
            record_answer=lambda held, body: noted.append((held, body)),
        ),
    )
    frontier.attach(node, Spider(name="test"))
    request, held = Request("http://a.example/"), held_url(1)
    frontier.started.record_start(request, held)
    for response in (
        Response(request.url, body=b"page"),
        Response(request.url, status=404, body=b"gone"),
        Response(request.url, body=b""),
    ):
        frontier.started.record_response(request, response, 1)
    other = Request("http://a.example/favicon.ico")
    frontier.started.record_response(other, Response(other.url, body=b"not the frontier's"), 1)
    assert noted == [(held, b"page")]
    assert answers == [(200, {}, 4), (404, {}, 4), (200, {}, 0)]


def test_a_page_is_noted_as_its_spider_is_given_it(tmp_path: Path) -> None:
    """Only of the frontier's own requests, with status 200; the text of a page may have near copies."""
    frontier = new_scheduler(tmp_path)
    noted: list[tuple[bytes, bool]] = []

    def note(held: HeldUrl, body: bytes, *, is_text: bool) -> None:
        noted.append((body, is_text))

    request, other = Request("http://a.example/"), Request("http://a.example/favicon.ico")
    frontier.started.record_page(Response(request.url, body=b"too early", request=request))
    frontier.attach(cast("Any", SimpleNamespace(observers=SimpleNamespace(record_page=note))), Spider(name="test"))
    frontier.started.record_start(request, held_url(1))
    for response in (
        HtmlResponse(request.url, body=b"page", request=request),
        Response(request.url, body=b"image", request=request),
        Response(request.url, status=404, body=b"gone", request=request),
        Response(other.url, body=b"not the frontier's", request=other),
        Response(request.url, body=b"of no request"),
    ):
        frontier.started.record_page(response)
    assert noted == [(b"page", True), (b"image", False)]
    frontier.attach(cast("Any", SimpleNamespace(observers=NO_OBSERVERS)), Spider(name="test"))
    frontier.started.record_page(HtmlResponse(request.url, body=b"page", request=request))
    assert len(noted) == 2
