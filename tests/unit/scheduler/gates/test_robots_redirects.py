"""What a robots.txt redirects to is fetched as politely, and not for ever."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.redisdb.keys import PartitionKeys
from bigcrawl.scheduler.gates import starts
from bigcrawl.scheduler.gates.interfaces import FetchedBody
from tests.unit.scheduler.gates.parts import ELSEWHERE, FILE, HOST, RULES, gates_of, obeying, rules_of
from tests.unit.scheduler.gates.test_gatekeeper import url_of

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.scheduler.records.at_gates import Space


def test_cross_host_robots_redirect_borrows_the_host(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """The host a robots.txt redirects to is lent: nobody else fetches it meanwhile, and it rests after."""

    async def scenario() -> None:
        async with obeying(tmp_path, crawl_name, redis_url, host_delay=30) as w:
            target = f"http://{ELSEWHERE}/rules.txt"
            w.web.answers |= {FILE: FetchedBody(301, location=target), target: FetchedBody(200, RULES)}
            keys = PartitionKeys(crawl_name, 0)
            record = keys.host + ELSEWHERE
            lent: list[Any] = []
            fetch = w.web

            async def watched(
                url: str, method: str = "GET", gaps: tuple[Space, ...] = (), like: bytes = b""
            ) -> FetchedBody:
                lent.append(await w.client.command("HEXISTS", record, "lent"))
                return await fetch(url, method, gaps)

            robots = gates_of(w).robots(watched)
            await robots.fetch_rules(url_of(HOST))
            assert w.web.asked == [FILE, target]
            assert lent == [0, 1]
            assert await w.client.command("HEXISTS", record, "lent") == 0
            now_s, _ = await w.client.command("TIME")
            assert int(await w.client.command("HGET", record, "next")) > (int(now_s) + 25) * 1_000
            known = robots.known_rules(f"http://{HOST}")
            assert known is not None
            assert not known.rules.is_allowed(f"http://{HOST}/x")

    asyncio.run(scenario())


@pytest.mark.parametrize("is_refused", [True, False], ids=["refused", "too slow"])
def test_robots_file_that_redirects_to_a_closed_door_is_out_of_reach(
    tmp_path: Path, crawl_name: str, redis_url: str, monkeypatch: pytest.MonkeyPatch, *, is_refused: bool
) -> None:
    """Its name does not resolve, or its server has no time: the file cannot be had, and the lent host is returned."""
    monkeypatch.setattr(starts, "BORROW_GATES_MS_MAX", 10_000 if is_refused else 10)

    async def wait(host: str, due_ms: int, url: str) -> None:
        await asyncio.Event().wait()

    async def scenario() -> None:
        async with obeying(tmp_path, crawl_name, redis_url) as w:
            w.web.answers |= {FILE: FetchedBody(301, location="http://gone.no.example/r")}
            gates = gates_of(w)
            starts = gates.starts()
            if not is_refused:
                monkeypatch.setattr(starts, "wait_for_start", wait)
            fetched = await gates.redirects(w.web, starts).fetch(FILE, HOST, ())
            assert w.web.asked == [FILE]
            assert fetched == FetchedBody(None)
            record = PartitionKeys(crawl_name, 0).host + "gone.no.example"
            assert await w.client.command("HEXISTS", record, "lent") == 0

    asyncio.run(scenario())


def test_lent_host_is_held_against_other_crawls(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """Where crawls meet, a host that a robots.txt redirects to is held for the fetch, and left for its delay."""
    done: list[tuple[str, ...]] = []

    class SharedHosts:
        are_kept = True

        async def hold_host(self, host: str) -> None:
            done.append(("hold", host))

        def leave_host(self, host: str, rest_ms: int) -> None:
            done.append(("leave", host))

    async def fetch(url: str, method: str = "GET", gaps: tuple[Space, ...] = (), like: bytes = b"") -> FetchedBody:
        done.append(("fetch", url))
        return FetchedBody(301, location=f"http://{ELSEWHERE}/r") if url == FILE else FetchedBody(404)

    async def scenario() -> None:
        async with obeying(tmp_path, crawl_name, redis_url) as w:
            gates = gates_of(w)
            gates.shared_hosts = SharedHosts()  # type: ignore[assignment]
            starts = gates.starts()
            await gates.redirects(fetch, starts).fetch(FILE, HOST, ())
        expected = [("fetch", FILE), ("hold", ELSEWHERE), ("fetch", f"http://{ELSEWHERE}/r"), ("leave", ELSEWHERE)]
        assert done == expected

    asyncio.run(scenario())


def test_redirects_end(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """A robots.txt that redirects for ever is given up after five hops, on one host and over many."""

    async def scenario() -> None:
        async with obeying(tmp_path, crawl_name, redis_url) as w:
            for i in range(20):
                w.web.answers[f"http://{HOST}/{i}"] = FetchedBody(302, location=f"http://{HOST}/{i + 1}")
                w.web.answers[f"http://h{i}.example/r"] = FetchedBody(302, location=f"http://h{i + 1}.example/r")
            w.web.answers[FILE] = FetchedBody(302, location=f"http://{HOST}/0")
            await rules_of(w).fetch_rules(url_of(HOST))
            assert len(w.web.asked) == 6
            w.web.answers[FILE] = FetchedBody(302, location="http://h0.example/r")
            w.web.asked.clear()
            await rules_of(w).fetch_rules(url_of(HOST))
            assert len(w.web.asked) == 6

    asyncio.run(scenario())
