"""What a page's requests may be, and what a node keeps of their answers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from scrapy.http import Response

from bigcrawl.middlewares.page_requests import PageRequestRefusedError
from bigcrawl_rendering.interface import Answered, Asked, LoadRefusedError
from bigcrawl_rendering.loads import KeptAnswers, PageLoads
from bigcrawl_rendering.rules import BlockedHosts

if TYPE_CHECKING:
    from scrapy import Request

PAGE = "http://a.example/"
KINDS = ("script", "xhr")


class Turn:
    """Answers as a page's turn does; what it was asked is noted."""

    def __init__(self) -> None:
        self.sent: list[Request] = []
        self.answers: dict[str, Any] = {}
        self.has_ended = False

    async def fetch(self, request: Request) -> Response:
        self.sent.append(request)
        await asyncio.sleep(0)
        answer = self.answers.get(request.url, Response(request.url, body=b"x"))
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def end(self) -> None:
        self.has_ended = True


def loads_of(turn: Turn, kept: KeptAnswers | None = None, requests_max: int = 5, kinds: Any = KINDS) -> PageLoads:
    return PageLoads(turn, PAGE, kept or KeptAnswers(), kinds, BlockedHosts(["ads.example"]), requests_max)  # type: ignore[arg-type]


def fetch(loads: PageLoads, *asked: Asked) -> list[Any]:
    async def scenario() -> list[Any]:
        return await asyncio.gather(*map(loads.fetch, asked), return_exceptions=True)

    return asyncio.run(scenario())


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (Asked("http://a.example/x.png", "image"), "blocked"),
        (Asked("http://a.example/x", "xhr", "POST"), "blocked"),
        (Asked("http://www.ads.example/x.js", "script"), "blocked"),
        (Asked("file:///etc/passwd", "xhr"), "blocked"),
        (Asked("http://a.example/private", "xhr"), "refused"),
        (Asked("http://a.example/broken", "xhr"), "failed"),
    ],
)
def test_a_request_that_is_not_answered_says_why(asked: Asked, reason: str) -> None:
    turn = Turn()
    turn.answers = {
        "http://a.example/private": PageRequestRefusedError("forbidden"),
        "http://a.example/broken": OSError("no answer"),
    }
    loads = loads_of(turn)
    [error] = fetch(loads, asked)
    assert isinstance(error, LoadRefusedError)
    assert error.reason == reason
    assert loads.counts == {reason: 1}
    assert bool(turn.sent) is (reason != "blocked")


def test_a_request_carries_what_the_page_says_and_not_who_it_is() -> None:
    turn = Turn()
    headers = {
        "accept": "application/json",
        "x-key": "1",
        "cookie": "a=b",
        "user-agent": "Mozilla",
        "sec-fetch-mode": "cors",
    }
    fetch(loads_of(turn), Asked("http://a.example/x", "xhr", headers=headers))
    [request] = turn.sent
    sent = {name.decode().lower() for name in request.headers}
    assert sent == {"accept", "x-key", "referer"}
    assert request.headers["Referer"] == PAGE.encode()


def test_requests_beyond_the_bound_fail_and_the_page_counts_as_cut() -> None:
    turn = Turn()
    loads = loads_of(turn, requests_max=2)
    answers = fetch(loads, *(Asked(f"http://a.example/{n}", "xhr") for n in range(4)))
    assert [isinstance(each, Answered) for each in answers] == [True, True, False, False]
    assert loads.is_cut
    assert loads.counts == {"sent": 2, "refused": 2}


def test_a_script_is_fetched_once_for_all_pages_of_a_node() -> None:
    """Also by pages that ask for it at a time; data is fetched by each. An error is not kept."""
    turn, kept = Turn(), KeptAnswers()
    turn.answers = {"http://a.example/no.js": Response("http://a.example/no.js", 404)}
    script, data = Asked("http://a.example/app.js", "script"), Asked("http://a.example/data", "xhr")
    fetch(loads_of(turn, kept), script, script, data)
    fetch(loads_of(turn, kept), script, data, Asked("http://a.example/no.js", "script"))
    fetch(loads_of(turn, kept), Asked("http://a.example/no.js", "script"))
    urls = [request.url.rpartition("/")[2] for request in turn.sent]
    assert sorted(urls) == ["app.js", "data", "data", "no.js", "no.js"]


def test_what_is_kept_is_bounded_in_bytes_and_time() -> None:
    kept = KeptAnswers(bytes_max=100)
    for number in range(10):
        kept.keep(str(number), Answered(str(number), 200, {}, b"x" * 30))
    assert [number for number in range(10) if kept.get(str(number))] == [7, 8, 9]
    kept = KeptAnswers(kept_s=-1)
    kept.keep("a", Answered("a", 200, {}, b"x"))
    assert kept.get("a") is None


def test_redirects_are_followed_within_the_bounds_of_requests() -> None:
    turn = Turn()
    for number in range(9):
        url = f"http://a.example/{number}"
        turn.answers[url] = Response(url, 302, {"Location": f"/{number + 1}"})
    turn.answers["http://a.example/3"] = Response("http://a.example/3", body=b"there")
    [found] = fetch(loads_of(turn), Asked("http://a.example/0", "xhr"))
    assert (found.url, found.body) == ("http://a.example/3", b"there")
    [error] = fetch(loads_of(turn, requests_max=9), Asked("http://a.example/4", "xhr"))
    assert error.reason == "failed"
    [error] = fetch(loads_of(turn, requests_max=2), Asked("http://a.example/4", "xhr"))
    assert error.reason == "refused"


def test_a_redirect_leads_to_no_blocked_host_and_takes_no_secret_along() -> None:
    turn = Turn()
    turn.answers["http://a.example/ad"] = Response("http://a.example/ad", 302, {"Location": "http://ads.example/"})
    turn.answers["http://a.example/api"] = Response("http://a.example/api", 302, {"Location": "http://b.example/"})
    [error] = fetch(loads_of(turn), Asked("http://a.example/ad", "xhr"))
    assert error.reason == "blocked"
    fetch(loads_of(turn), Asked("http://a.example/api", "xhr", headers={"Authorization": "Bearer x"}))
    assert [b"Authorization" in request.headers for request in turn.sent] == [False, True, False]


def test_a_page_that_leaves_does_not_end_what_another_waits_for() -> None:
    async def scenario() -> Answered:
        turn, kept = Turn(), KeptAnswers()
        script = Asked("http://a.example/app.js", "script")
        first = asyncio.ensure_future(loads_of(turn, kept).fetch(script))
        await asyncio.sleep(0)
        second = asyncio.ensure_future(loads_of(turn, kept).fetch(script))
        await asyncio.sleep(0)
        first.cancel()
        return await second

    assert asyncio.run(scenario()).body == b"x"


def test_a_script_that_another_page_may_not_have_any_more_is_fetched_again() -> None:
    async def scenario() -> tuple[Any, Answered]:
        first, second, kept = Turn(), Turn(), KeptAnswers()
        script = Asked("http://a.example/app.js", "script")
        first.answers[script.url] = PageRequestRefusedError("its page is over")
        refused = asyncio.ensure_future(loads_of(first, kept).fetch(script))
        await asyncio.sleep(0)
        found = await loads_of(second, kept).fetch(script)
        return (await asyncio.gather(refused, return_exceptions=True))[0], found

    refused, found = asyncio.run(scenario())
    assert isinstance(refused, LoadRefusedError)
    assert found.body == b"x"
