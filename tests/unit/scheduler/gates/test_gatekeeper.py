"""What the gatekeeper asks: every URL gets exactly one answer, now or later, and its host the right rest."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import msgpack
import numpy as np
import pytest

from bigcrawl.exceptions import TransientStoreError
from bigcrawl.scheduler.crawl.fetched_elsewhere import FetchedElsewhere
from bigcrawl.scheduler.crawl.fingerprints import Fingerprints
from bigcrawl.scheduler.gates.batcher import QuestionBatcher
from bigcrawl.scheduler.gates.gatekeeper import EARLY_MS, STORE_RETRY_MS, Gatekeeper
from bigcrawl.scheduler.gates.interfaces import Closed, FetchedBody
from bigcrawl.scheduler.node.set_aside import Sweeper
from bigcrawl.scheduler.records.held import HeldUrl, Stage
from bigcrawl.scheduler.records.member import Member
from bigcrawl.scheduler.records.queued_url import ASKED, UNCHECKED
from bigcrawl.url.scrapy_fingerprint import fingerprint_of
from tests.unit.scheduler.gates.parts import Gates
from tests.unit.scheduler.world import World

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path


class Answers:
    """An outlet that notes what it is told."""

    def __init__(self) -> None:
        self.said: list[tuple[Any, ...]] = []

    def admit(self, held: HeldUrl) -> None:
        self.said.append(("admit", held.seq))

    def give_back(self, held: HeldUrl, delay_ms: int, counter: str = "") -> None:
        self.said.append(("back", held.seq, delay_ms, counter))

    def give_up(self, held: HeldUrl, reason: str, rule: str = "") -> None:
        self.said.append(("up", held.seq, reason))

    def fail(self, held: HeldUrl, outcome: str, error: Exception | None = None) -> None:
        self.said.append(("fail", held.seq, error or outcome))


def url_of(host: str, path: str = "/", seq: int = 1, due_ms: int = 0) -> HeldUrl:
    url = f"http://{host}{path}"
    fields = Member(seq, seq, 0, 0, 0, b"")
    return HeldUrl(0, host, due_ms, b"", fields, url, f"http://{host}")


class Gate:
    """A gatekeeper with the parts it asks."""

    def __init__(self, w: World, resolves_here: Callable[[str], bool]) -> None:
        self.world = w
        self.answers = Answers()
        parts = Gates(w.config, w.client, w.clock, resolves_here=resolves_here)
        self.robots = parts.robots(w.web)
        self.fingerprints = Fingerprints(w.client, w.config.crawl.name)
        self.elsewhere = FetchedElsewhere(QuestionBatcher(self.fingerprints.have).ask)
        nothing_owned: Any = SimpleNamespace(owned={})
        self.sweeper = Sweeper(w.client, nothing_owned, self.robots, w.clock)
        self.keeper = Gatekeeper(
            parts.starts(),
            self.robots,
            parts.heads(w.web),
            self.elsewhere,
            self.answers,
            parts.aside,
            self.sweeper,
        )

    async def ask(self, *urls: HeldUrl) -> list[tuple[Any, ...]]:
        """Offer URLs; return the answers when all are there."""
        before = len(self.answers.said)
        for held in urls:
            self.keeper.offer(held)
        while self.keeper._tasks:
            await asyncio.gather(*self.keeper._tasks)
        return self.answers.said[before:]


@asynccontextmanager
async def gate(
    tmp_path: Path,
    crawl: str,
    redis_url: str,
    resolves_here: Callable[[str], bool] = lambda host: True,
    **settings: Any,
) -> AsyncIterator[Gate]:
    w = World(tmp_path, crawl, redis_url, {"robots": "obey", **settings})
    made = Gate(w, resolves_here)
    try:
        yield made
    finally:
        await made.keeper.close()
        await w.close()


def test_first_url_of_a_host_gives_its_place_to_robots(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """robots.txt is fetched in the URL's place; the URL goes back for the delay, then is admitted."""

    async def scenario() -> None:
        async with gate(tmp_path, crawl_name, redis_url, host_delay=2) as g:
            held = url_of("a.example")
            assert await g.ask(held) == [("back", 1, 2_000, "robots")]
            assert held.stage is Stage.ROBOTS, "its host is being asked: it must not be returned as if it were not"
            again = url_of("a.example", seq=2)
            assert await g.ask(again) == [("admit", 2)]
            assert again.address == "192.0.2.1"
            assert g.world.web.asked == ["http://a.example/robots.txt"]

    asyncio.run(scenario())


def asked_first(host: str, path: str, seq: int = 1, method: str = "GET", flags: int = 0) -> HeldUrl:
    """A URL whose body says its method."""
    url = f"http://{host}{path}"
    body = msgpack.packb([url, 0, None if method == "GET" else {"method": method}])
    return HeldUrl(0, host, 0, b"", Member(seq, seq, 0, flags, 0, body), url, f"http://{host}")


HEADS: dict[str, Any] = {"robots": "ignore-i-own-these-hosts", "head_first": ["/*.pdf$"], "host_delay": 2}


def test_a_url_of_a_kind_that_asks_for_it_is_asked_by_head_first(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """In its place, once: it goes back for the delay, marked, and is admitted when it comes again. Others are not."""

    async def scenario() -> None:
        async with gate(tmp_path, crawl_name, redis_url, **HEADS) as g:
            held = asked_first("a.example", "/a.pdf")
            assert await g.ask(held) == [("back", 1, 2_000, "heads")]
            assert held.stage is Stage.ROBOTS
            assert held.fields.flags == ASKED
            others = [
                asked_first("a.example", "/a.pdf", 2, flags=ASKED),
                asked_first("a.example", "/a.html", 3),
                asked_first("a.example", "/a.pdf", 4, "POST"),
                url_of("a.example", "/a.pdf", 5),
            ]
            assert sorted(await g.ask(*others)) == [("admit", seq) for seq in range(2, 6)]
            assert g.world.web.asked == ["HEAD http://a.example/a.pdf"]

    asyncio.run(scenario())


def test_the_answer_to_a_head_decides(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """By media type and size, if its status is 200; whatever else comes of it, the URL is fetched in its next turn."""
    filters: dict[str, Any] = {"filter_media_types": ["application/pdf"], "truncate": False, "DOWNLOAD_MAXSIZE": 1_000}
    rows = {
        "type": (FetchedBody(200, content_type=b"image/png"), ("up", "media-type")),
        "size": (FetchedBody(200, content_type=b"application/pdf", content_length=b"1001"), ("up", "size")),
        "fits": (FetchedBody(200, content_type=b"application/pdf", content_length=b"1000"), ("back", "heads")),
        "untold": (FetchedBody(200, content_length=b"many"), ("back", "heads")),
        "refused": (FetchedBody(405, content_type=b"image/png", content_length=b"9999"), ("back", "heads")),
        "silent": (FetchedBody(None, failure="error:timeout"), ("back", "heads")),
    }

    async def scenario() -> None:
        async with gate(tmp_path, crawl_name, redis_url, **HEADS, **filters) as g:
            for name, (answer, (way, said)) in rows.items():
                g.world.web.answers[f"HEAD http://{name}.example/a.pdf"] = answer
                [found] = await g.ask(asked_first(f"{name}.example", "/a.pdf"))
                assert (found[0], found[-1]) == (way, said), name

    asyncio.run(scenario())


def test_a_head_is_as_polite_as_a_page(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """After robots.txt, which may forbid it; with the rest that its answer asks for; and not if the node stops."""

    async def scenario() -> None:
        async with gate(tmp_path, crawl_name, redis_url, **{**HEADS, "robots": "obey"}) as g:
            web = g.world.web
            web.answers["http://a.example/robots.txt"] = FetchedBody(
                200, b"User-agent: *\nDisallow: /no\nCrawl-delay: 5"
            )
            web.answers["HEAD http://a.example/a.pdf"] = FetchedBody(429, retry_after="30")
            assert await g.ask(asked_first("a.example", "/a.pdf")) == [("back", 1, 5_000, "robots")]
            assert await g.ask(asked_first("a.example", "/no.pdf")) == [("up", 1, "forbidden")]
            assert await g.ask(asked_first("a.example", "/a.pdf")) == [("back", 1, 30_000, "heads")]
            assert await g.ask(asked_first("a.example", "/b.pdf")) == [("back", 1, 5_000, "heads")]
            web.answers["HEAD http://a.example/c.pdf"] = Closed(retry_ms=700)
            given_up = asked_first("a.example", "/c.pdf")
            assert await g.ask(given_up) == [("back", 1, 5_000, "")]
            assert not given_up.fields.flags, "it is asked again"

    asyncio.run(scenario())


def test_crawl_delay_is_the_rest_after_robots(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """What robots.txt asks for holds from its own fetch on, up to the cap."""

    async def scenario() -> None:
        async with gate(tmp_path, crawl_name, redis_url, host_delay=1, crawl_delay_max=8) as g:
            for host, asked_s, delay_ms in (("a.example", 5, 5_000), ("b.example", 3_600, 8_000)):
                body = f"User-agent: *\nCrawl-delay: {asked_s}\n".encode()
                g.world.web.answers[f"http://{host}/robots.txt"] = FetchedBody(200, body)
                assert await g.ask(url_of(host)) == [("back", 1, delay_ms, "robots")]

    asyncio.run(scenario())


def test_forbidden_url_ends_and_the_others_pass(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """The rules decide by URL; a forbidden one asks for neither address nor gate."""

    async def scenario() -> None:
        async with gate(tmp_path, crawl_name, redis_url) as g:
            g.world.web.answers["http://a.example/robots.txt"] = FetchedBody(200, b"User-agent: *\nDisallow: /x")
            await g.ask(url_of("a.example"))
            answers = await g.ask(url_of("a.example", "/x/1", 2), url_of("a.example", "/y", 3))
            assert answers == [("up", 2, "forbidden"), ("admit", 3)]

    asyncio.run(scenario())


def test_host_without_address_has_failed(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Where DNS says nothing the URL goes back, says so of its host, as often as it comes; a missing name ends it."""

    async def scenario() -> None:
        async with gate(tmp_path, crawl_name, redis_url, robots="ignore-i-own-these-hosts") as g:
            assert await g.ask(url_of("x.no.example")) == [("up", 1, "unresolved")]
            for _ in range(5):
                held = url_of("x.slow.example")
                [(answer, _, wait_ms, _)] = await g.ask(held)
                assert (answer, held.host_report) == ("back", "dns")
                assert wait_ms > 0
                g.world.clock.advance(3_600_000)

    asyncio.run(scenario())


def test_errback_hears_of_a_host_that_has_failed(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """A URL with one fails with its host, by DNS or when robots.txt is asked for: a try like any other."""

    async def scenario() -> None:
        async with gate(tmp_path, crawl_name, redis_url) as g:
            g.world.web.answers["http://a.example/robots.txt"] = FetchedBody(None, failure="error:refused")
            g.world.web.answers["http://b.example/robots.txt"] = FetchedBody(500)
            for host, answer in (
                ("x.slow.example", ("fail", 1, "error:dns")),
                ("a.example", ("fail", 1, "error:refused")),
                ("b.example", ("back", 1, g.world.config.politeness.host_delay_ms, "robots")),
            ):
                held = url_of(host)
                held.has_errback = True
                assert await g.ask(held) == [answer]

    asyncio.run(scenario())


@pytest.mark.parametrize("has_errback", [True, False])
@pytest.mark.parametrize("way", ["robots", "redirect", "head"])
def test_error_of_ours_is_the_urls_and_not_its_hosts(
    tmp_path: Path, crawl_name: str, redis_url: str, way: str, *, has_errback: bool
) -> None:
    """A handler that fails by itself, over robots.txt, where that leads, or a head: this URL fails with that error."""
    error = OSError("of a library")

    async def scenario() -> None:
        settings = HEADS if way == "head" else {}
        async with gate(tmp_path, crawl_name, redis_url, **settings) as g:
            answers = g.world.web.answers
            elsewhere = "http://b.example/robots.txt"
            answers["http://a.example/robots.txt"] = FetchedBody(301, location=elsewhere)
            answers[{"robots": "http://a.example/robots.txt", "redirect": elsewhere}.get(way, "-")] = Closed(
                error=error
            )
            answers["HEAD http://a.example/a.pdf"] = Closed(error=error)
            held = asked_first("a.example", "/a.pdf") if way == "head" else url_of("a.example")
            held.has_errback = has_errback
            assert await g.ask(held) == [("fail", 1, error)]
            assert (held.host_report, held.robots_failure) == ("", "")

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("settings", "is_proxys", "is_at_once"),
    [
        ({}, False, True),
        ({"server_delay": 0.01}, False, False),
        ({"pld_delay": 0.01}, False, False),
        ({"server_delay": 0.01}, True, True),
        ({"pld_delay": 0.01}, True, False),
    ],
)
def test_url_that_needs_no_answer_waits_for_none(
    tmp_path: Path, crawl_name: str, redis_url: str, settings: dict[str, Any], is_proxys: bool, is_at_once: bool
) -> None:
    """A host that is known, or a proxy's, passes at once where there is no gate; a gate must be asked each time."""
    settings = {"robots": "ignore-i-own-these-hosts", "contact": "me@uni-somewhere.de", **settings}

    async def scenario() -> None:
        async with gate(tmp_path, crawl_name, redis_url, lambda host: not is_proxys, **settings) as g:
            assert await g.ask(url_of("a.example")) == [("admit", 1)]
            g.world.clock.advance(1_000)
            g.keeper.offer(url_of("a.example", seq=2))
            assert (("admit", 2) in g.answers.said) is is_at_once
            await asyncio.gather(*g.keeper._tasks)
            assert g.answers.said[-1] == ("admit", 2)

    asyncio.run(scenario())


def test_url_is_paced_until_it_is_due(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """A URL taken ahead of its time is admitted just before it is due, and holds up nobody else."""

    async def scenario() -> None:
        async with gate(tmp_path, crawl_name, redis_url, robots="ignore-i-own-these-hosts") as g:
            await g.ask(url_of("a.example"), url_of("b.example", seq=2))
            g.answers.said.clear()
            loop = asyncio.get_running_loop()
            started = loop.time()
            g.keeper.offer(url_of("a.example", seq=3, due_ms=20))
            g.keeper.offer(url_of("b.example", seq=4))
            assert g.answers.said == [("admit", 4)]
            await asyncio.gather(*g.keeper._tasks)
            assert g.answers.said == [("admit", 4), ("admit", 3)]
            assert loop.time() - started >= 0.02 - EARLY_MS / 1000

    asyncio.run(scenario())


def test_host_rests_its_delay_when_redis_goes_away_after_robots(
    tmp_path: Path, crawl_name: str, redis_url: str
) -> None:
    """robots.txt was fetched, its rules cannot be shared: the host was asked all the same, and rests."""

    async def scenario() -> None:
        async with gate(tmp_path, crawl_name, redis_url, host_delay=30) as g:
            run = g.world.client._run_some
            refused = []

            async def away(calls: list[Any], now_ms: int) -> Any:
                if any(call.name == "put_robots" for call in calls):
                    refused.extend(calls)
                    raise TransientStoreError("gone")
                return await run(calls, now_ms)

            g.world.client._run_some = away  # type: ignore[method-assign,assignment]
            [answer] = await g.ask(url_of("a.example"))
            assert answer[:3] == ("back", 1, 30_000)
            assert refused

    asyncio.run(scenario())


def test_redis_away_sends_the_url_back(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """A URL that cannot be decided over without Redis returns to its queue and is tried again."""

    async def scenario() -> None:
        async with gate(tmp_path, crawl_name, redis_url) as g:

            async def away(rows: object, *, raise_errors: bool) -> Any:
                raise TransientStoreError("gone")

            g.world.client._pipeline = away  # type: ignore[method-assign]
            assert await g.ask(url_of("a.example")) == [("back", 1, STORE_RETRY_MS, "")]

    asyncio.run(scenario())


@pytest.mark.parametrize("known_before", [True, False])
def test_broken_rules_stop_neither_the_node_nor_the_other_urls(
    tmp_path: Path, crawl_name: str, redis_url: str, known_before: bool
) -> None:
    """Whatever goes wrong in a decision, `offer` raises nothing and the URL goes back to its queue."""

    async def scenario() -> None:
        async with gate(tmp_path, crawl_name, redis_url) as g:
            if known_before:
                await g.ask(url_of("a.example"))

                def broken(held: HeldUrl, known: object) -> bool:
                    raise ZeroDivisionError

                g.keeper._end_if_forbidden = broken  # type: ignore[method-assign]
            else:
                g.world.web.answers["http://a.example/robots.txt"] = ZeroDivisionError()
            [answer] = await g.ask(url_of("a.example"))
            assert answer[0] == "back"
            assert answer[2] >= STORE_RETRY_MS

    asyncio.run(scenario())


def test_closing_leaves_no_task_behind(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """URLs under way when the node stops get no answer: they stay taken until the node returns them."""

    async def scenario() -> None:
        async with gate(tmp_path, crawl_name, redis_url) as g:
            g.world.web.gate = asyncio.Event()
            g.keeper.offer(url_of("a.example"))
            await g.world.web.was_asked.wait()
            await g.keeper.close()
            assert g.answers.said == []
            assert repr(g.keeper) == "<Gatekeeper tasks=0>"

    asyncio.run(scenario())


def test_url_that_was_fetched_elsewhere_ends(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """It is asked for before its robots.txt; a request with `dont_filter`, and one that is not known, goes on."""

    async def scenario() -> None:
        async with gate(tmp_path, crawl_name, redis_url, host_delay=2) as g:
            old, new, again = (
                url_of("a.example", f"/{name}", seq) for seq, name in enumerate(("old", "new", "old"), 1)
            )
            for held, payload in ((old, None), (new, None), (again, {"dont_filter": True})):
                held.fields = held.fields._replace(body=msgpack.packb([held.url, 1, payload]), flags=UNCHECKED)
            prints = np.array([fingerprint_of("scrapy-redis", old.url)], np.uint64)
            await g.fingerprints.update(prints, np.empty(0, np.uint64))
            assert ("up", 1, "elsewhere") not in await g.ask(old), "nothing was imported"
            g.elsewhere.adopt(b"scrapy-redis")
            assert await g.ask(old) == [("up", 1, "elsewhere")], "also if it has been back on disk"
            said = await g.ask(new, again)
            assert {one[:2] for one in said} <= {("back", 2), ("back", 3), ("admit", 2), ("admit", 3)}
            g.elsewhere.adopt(b"scrapy")
            assert ("up", 1, "elsewhere") not in await g.ask(old), "its fingerprint is another"

    asyncio.run(scenario())
