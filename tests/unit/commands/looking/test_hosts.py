"""`scrapy frontier hosts`: states, orders, names, patterns and pages, in a Redis with hosts of every kind."""

from __future__ import annotations

import argparse
import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.commands.looking.sites import hosts, hosts_options, hosts_text
from bigcrawl.redisdb.scripts import RETIRED_MS
from bigcrawl.views.opened_crawl import OpenedCrawl
from tests.unit.commands.steering.test_budget import begun
from tests.unit.scheduler.world import make_config

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.config import Config

# Host: its place in ready heap and among the snoozed, in seconds from now; URLs queued and taken; failures; rest.
HOSTS: dict[str, tuple[float | None, float | None, int, int, int, int]] = {
    "www.ready.example": (-10, None, 3, 0, 0, 0),
    "old.ready.example": (-500, None, 7, 0, 0, 0),
    "waits.example": (20, None, 5, 0, 0, 9_000),
    "fails.example": (30, None, 2, 0, 2, 4_000),
    "busy.example": (None, None, 1, 1, 0, 0),
    "two.busy.example": (5, None, 4, 2, 0, 0),
    "sleeps.example": (900, 900, 1, 0, 6, 900_000),
    "deep.sleeps.example": (None, 90, 0, 0, 5, 90_000),
    "gone.example": (None, RETIRED_MS / 1000, 0, 0, 8, 0),
}
STATES = {
    "busy": ["busy.example", "two.busy.example"],
    "ready": ["old.ready.example", "www.ready.example"],
    "waiting": ["waits.example", "fails.example"],
    "snoozed": ["deep.sleeps.example", "sleeps.example"],
    "retired": ["gone.example"],
}


@pytest.fixture
def config(tmp_path: Path, crawl_name: str, redis_url: str) -> Config:
    made = make_config(tmp_path, crawl_name, redis_url)

    async def begin() -> None:
        async with begun(made) as client:
            crawl = await OpenedCrawl.of(made, client)
            now_ms = client.now_ms()
            for host, (ready_s, snoozed_s, queued, taken, failures, rest_ms) in HOSTS.items():
                keys = crawl.keys(crawl.place_of(f"http://{host}/").partition)
                for name, due_s in (("ready", ready_s), ("snoozed", snoozed_s)):
                    if due_s is not None:
                        due_ms = due_s * 1000 if due_s >= RETIRED_MS / 1000 else now_ms + due_s * 1000
                        await client.command("ZADD", getattr(keys, name), due_ms, host)
                for number in range(queued):
                    await client.command("ZADD", keys.back + host, number, f"{number}:x")
                if taken:
                    await client.command("HSET", keys.busy, host, taken)
                if failures:
                    await client.command("HSET", keys.host + host, "failures", failures, "why", "error:timeout")
                if rest_ms:
                    await client.command("HSET", keys.host + host, "delay", rest_ms)

    asyncio.run(begin())
    return made


def ask(config: Config, *words: str) -> list[dict[str, Any]]:
    parser = argparse.ArgumentParser()
    parser.add_argument("words", nargs="*")
    hosts_options(parser)
    opts = parser.parse_args(words)
    answer = hosts(config, opts.words, opts)
    assert answer.status == 0
    json.dumps(answer.data)
    assert answer.text == hosts_text(answer.data)
    assert answer.data["is_whole"]
    rows: list[dict[str, Any]] = answer.data["hosts"]
    return rows


def names(rows: list[dict[str, Any]]) -> list[str]:
    return [row["host"] for row in rows]


@pytest.mark.parametrize("state", STATES)
def test_each_state_has_its_hosts_in_the_order_they_are_due(config: Config, state: str) -> None:
    rows = ask(config, "--state", state)
    assert names(rows) == STATES[state]
    assert {row["state"] for row in rows} == {state}


def test_all_hosts_come_once_each_page_by_page(config: Config) -> None:
    """Those that are taken first, then as they are due, those that are never due last."""
    order = [*STATES["busy"], *STATES["ready"], *STATES["waiting"], *STATES["snoozed"], *STATES["retired"]]
    assert names(ask(config)) == order
    pages = [names(ask(config, "--limit", "2", "--first", str(first))) for first in range(0, 10, 2)]
    assert [host for page in pages for host in page] == order


def test_other_orders(config: Config) -> None:
    assert names(ask(config, "--sort", "waiting", "--limit", "2")) == ["old.ready.example", "waits.example"]
    assert names(ask(config, "--sort", "failures", "--limit", "2")) == ["gone.example", "sleeps.example"]
    assert names(ask(config, "--sort", "rate"))[-2:] == ["deep.sleeps.example", "sleeps.example"]


def test_names_and_patterns(config: Config) -> None:
    """A PLD stands for its hosts, a host for itself; case does not matter; a pattern has * in it."""
    assert names(ask(config, "ready.example")) == STATES["ready"]
    assert names(ask(config, "WWW.ready.example")) == ["www.ready.example"]
    assert names(ask(config, "*sleeps*")) == STATES["snoozed"]
    assert names(ask(config, "*busy*", "--sort", "waiting")) == ["two.busy.example", "busy.example"]
    assert ask(config, "nowhere.example") == []
    assert hosts_text({"hosts": [], "is_whole": True}).startswith("no host in Redis matches")


def test_a_row_says_what_the_host_waits_for(config: Config) -> None:
    [row] = ask(config, "fails.example")
    assert 25 < row.pop("due_in_s") <= 30
    expected = {"state": "waiting", "queued": 2, "taken": 0, "rest_s": 4.0, "failures": 2, "why": "error:timeout"}
    assert row == {"host": "fails.example", **expected}
    [row] = ask(config, "gone.example")
    assert (row["due_in_s"], row["state"], row["failures"]) == (None, "retired", 8)


def test_long_walks_end_and_say_so(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    """No listing walks through hosts without end, and steps of one host find the same."""
    monkeypatch.setattr("bigcrawl.views.hosts.AT_ONCE", 1)
    assert names(ask(config, "*sleeps*")) == STATES["snoozed"]
    monkeypatch.setattr("bigcrawl.views.hosts.WALKED_MAX", 2)
    opts = argparse.Namespace(state="", sort="waiting", limit=5, first=0)
    answer = hosts(config, [], opts)
    assert (len(answer.data["hosts"]), answer.data["is_whole"]) == (2, False)
    assert "there are more hosts" in answer.text
