"""Rules that a node knows are bounded by their size, and those that are alike are one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from bigcrawl.scheduler.gates import robots_store as rules_module
from bigcrawl.scheduler.gates.interfaces import FetchedBody
from bigcrawl.scheduler.gates.robots_store import ENTRY_BYTES
from tests.unit.scheduler.gates.parts import RULES, obeying, rules_of
from tests.unit.scheduler.gates.test_gatekeeper import url_of

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_memory_of_kept_rules_is_bounded(
    tmp_path: Path, crawl_name: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few files of the greatest length must not take what thousands of usual ones may."""
    monkeypatch.setattr(rules_module, "RULES_BYTES_MAX", 200_000)

    async def scenario() -> None:
        async with obeying(tmp_path, crawl_name, redis_url) as w:
            robots = rules_of(w)
            for host in "abcd":
                w.web.answers[f"http://{host}.example/robots.txt"] = FetchedBody(
                    200, b"User-agent: *\n" + b"".join(b"Disallow: /%b%d\n" % (host.encode(), n) for n in range(300))
                )
                await robots.fetch_rules(url_of(f"{host}.example"))
                await robots.fetch_rules(url_of(f"{host}.example"))
            assert [robots.known_rules(f"http://{host}.example") is not None for host in "abcd"] == [
                False,
                False,
                True,
                True,
            ]
            last = robots.known_rules("http://d.example")
            assert last is not None
            assert robots._rules._size == 2 * (rules_module._size_of(last.rules) + ENTRY_BYTES)

    asyncio.run(scenario())


def test_rules_that_many_sites_have_are_kept_once(tmp_path: Path, crawl_name: str, redis_url: str) -> None:
    """What came with a site's software takes no more room for a thousand sites than for one."""

    async def scenario() -> None:
        async with obeying(tmp_path, crawl_name, redis_url) as w:
            robots = rules_of(w)
            for host in "abcd":
                w.web.answers[f"http://{host}.example/robots.txt"] = FetchedBody(200, RULES)
                await robots.fetch_rules(url_of(f"{host}.example"))
            known = [robots.known_rules(f"http://{host}.example") for host in "abcd"]
            assert len({id(each.rules) for each in known if each}) == 1
            assert known[0] is not None
            assert robots._rules._size == 4 * ENTRY_BYTES + rules_module._size_of(known[0].rules)

    asyncio.run(scenario())


def test_kept_rules_are_bounded(
    tmp_path: Path, crawl_name: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cache of parsed rules does not grow with the hosts of the web; those used last stay."""
    monkeypatch.setattr(rules_module, "RULES_BYTES_MAX", 3 * ENTRY_BYTES - 1)

    async def scenario() -> None:
        async with obeying(tmp_path, crawl_name, redis_url) as w:
            robots = rules_of(w)
            for host in ("a.example", "b.example", "a.example", "c.example"):
                if robots.known_rules(f"http://{host}") is None:
                    await robots.fetch_rules(url_of(host))
            assert [robots.known_rules(f"http://{host}.example") is not None for host in "abc"] == [
                True,
                False,
                True,
            ]
            assert "under_way=0" in repr(robots)

    asyncio.run(scenario())
