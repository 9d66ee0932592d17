"""What the downloader says of requests, and what it is told."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import msgpack
import pytest
from scrapy import Request, Spider
from scrapy.exceptions import DownloadFailedError, DownloadTimeoutError
from scrapy.http import HtmlResponse, Response

from bigcrawl.revisiting.policies import PERIODIC, RevisitPolicy, WaitBounds
from bigcrawl.revisiting.visit import Answer, next_visit
from bigcrawl.scheduler.handout.revisits import Revisits
from bigcrawl.scheduler.records.body import for_revisit
from bigcrawl.tallies.tallies import Tallies
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
    crowd = SimpleNamespace(note=lambda host, took_ms: times.append((host, took_ms)))
    fetches = SimpleNamespace(note_answered=over.append)
    handout = SimpleNamespace(crowd=crowd, fetches=fetches, lease=SimpleNamespace(is_valid=True))
    frontier.attach(cast("Any", SimpleNamespace(handout=handout)), Spider(name="test"))
    request = Request("http://a.example/", meta={"download_latency": 0.1} if has_begun else {})
    held = held_url(1)
    frontier.started.note_start(request, held)
    failure = DownloadTimeoutError("3 s") if error == "timeout" else DownloadFailedError("reset")
    frontier.started.note_failure(request, failure, 3_000)
    assert times == [(held.host, 3_000)] * noted
    assert over == [held]


@pytest.mark.parametrize("is_known", [False, True])
def test_page_that_is_visited_again_is_no_copy_of_itself(tmp_path: Path, *, is_known: bool) -> None:
    """A site would look like a trap if its pages had the content of others because they had it before."""
    frontier = new_scheduler(tmp_path)
    seen: list[bytes] = []
    policy = RevisitPolicy(PERIODIC, WaitBounds(100, 1, 1_000))

    def noted(_: str, page: bytes) -> bytes:
        seen.append(page)
        return b""

    node: Any = SimpleNamespace(
        handout=SimpleNamespace(
            revisits=Revisits(policy, 0, lambda: 0),
            fetches=SimpleNamespace(note_answered=lambda held: None),
            lease=SimpleNamespace(is_valid=False),
        ),
        same_content=SimpleNamespace(note=noted),
        wildcards=None,
        tallies=Tallies(),
    )
    frontier.attach(node, Spider(name="test"))
    request, held = Request("http://a.example/"), held_url(1)
    body: bytes = msgpack.packb(["http://a.example/", 0, None])
    if is_known:
        visit = next_visit(None, Answer(200, b"digest"), 0, policy)
        assert visit is not None
        body = for_revisit(body, visit.pack())
    held.fields = held.fields._replace(body=body)
    frontier.started.note_start(request, held)
    frontier.started.note_response(request, Response(request.url, body=b"page"), 1)
    assert seen == ([] if is_known else [b"page"])


def test_a_page_is_noted_as_its_spider_is_given_it(tmp_path: Path) -> None:
    """Only of the frontier's own requests, with status 200; the text of a page may have near copies."""
    frontier = new_scheduler(tmp_path)
    noted: list[tuple[bytes, bool]] = []

    def note(held: HeldUrl, body: bytes, *, is_text: bool) -> None:
        noted.append((body, is_text))

    request, other = Request("http://a.example/"), Request("http://a.example/favicon.ico")
    frontier.started.note_page(Response(request.url, body=b"too early", request=request))
    frontier.attach(cast("Any", SimpleNamespace(contents=SimpleNamespace(note=note))), Spider(name="test"))
    frontier.started.note_start(request, held_url(1))
    for response in (
        HtmlResponse(request.url, body=b"page", request=request),
        Response(request.url, body=b"image", request=request),
        Response(request.url, status=404, body=b"gone", request=request),
        Response(other.url, body=b"not the frontier's", request=other),
        Response(request.url, body=b"of no request"),
    ):
        frontier.started.note_page(response)
    assert noted == [(b"page", True), (b"image", False)]
    frontier.attach(cast("Any", SimpleNamespace(contents=None)), Spider(name="test"))
    frontier.started.note_page(HtmlResponse(request.url, body=b"page", request=request))
    assert len(noted) == 2
