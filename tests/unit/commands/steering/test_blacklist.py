"""`scrapy frontier blacklist`: entries added and taken off while a crawl runs, over those of the settings."""

from __future__ import annotations

import argparse
import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.commands.looking.explain import explain
from bigcrawl.commands.steering.pause import blacklist, blacklist_text
from bigcrawl.exceptions import ConfigError
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.node.control import BLACKLISTED
from tests.unit.commands.steering.test_budget import begun
from tests.unit.scheduler.world import connected, make_config

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.config import Config


@pytest.fixture
def config(tmp_path: Path, crawl_name: str, redis_url: str) -> Config:
    made = make_config(tmp_path, crawl_name, redis_url, blacklist=["of-settings.example"])

    async def begin() -> None:
        async with begun(made):
            pass

    asyncio.run(begin())
    return made


def ask(config: Config, *words: str, status: int = 0) -> dict[str, Any]:
    answer = blacklist(config, words, argparse.Namespace())
    assert answer.status == status
    json.dumps(answer.data)
    assert answer.text == blacklist_text(answer.data)
    return answer.data


def changes(config: Config) -> int:
    async def read() -> int:
        assert config.crawl.redis_url is not None
        async with connected(config.crawl.redis_url) as client:
            value = await client.command("HGET", CrawlKeys(config.crawl.name).control, BLACKLISTED)
            return int(value or 0)

    return asyncio.run(read())


def test_entries_come_and_go(config: Config) -> None:
    """Added in one spelling, listed with where they come from, removed, those of the settings too."""
    assert ask(config, "list")["entries"] == {"of-settings.example": "settings"}
    assert ask(config, "add", "A.Example", "192.0.2.7/24")["added"] == ["192.0.2.0/24", "a.example"]
    assert ask(config, "remove", "a.example", "of-settings.example")["removed"] == ["a.example", "of-settings.example"]
    assert ask(config, "list")["entries"] == {"192.0.2.0/24": "by hand"}
    assert ask(config, "add", "of-settings.example")["entries"] == {
        "192.0.2.0/24": "by hand",
        "of-settings.example": "settings",
    }


def test_nodes_are_told_of_changes_and_of_nothing_else(config: Config) -> None:
    """The number rises with each change; a list, or what is there already, is none."""
    ask(config, "add", "a.example")
    assert changes(config) == 1
    ask(config, "add", "a.example")
    ask(config, "list")
    assert changes(config) == 1
    ask(config, "remove", "a.example")
    assert changes(config) == 2


def test_what_is_not_there_cannot_be_removed(config: Config) -> None:
    """It is named, the exit status is 1, and the others are removed."""
    ask(config, "add", "a.example")
    answer = ask(config, "remove", "a.example", "b.example", status=1)
    assert (answer["removed"], answer["unknown"]) == (["a.example"], ["b.example"])


@pytest.mark.parametrize("words", [["add"], ["remove"], ["list", "a.example"], ["drop", "a.example"], ["add", "a/b"]])
def test_what_makes_no_sense_changes_nothing(config: Config, words: list[str]) -> None:
    """One line says what may be asked."""
    with pytest.raises(ConfigError, match="scrapy frontier blacklist"):
        ask(config, *words)
    assert changes(config) == 0


def test_a_url_is_explained_by_the_entry_that_covers_it(config: Config) -> None:
    """Host or pattern, with the entry's name; nothing is said of others."""
    ask(config, "add", "re:/calendar", "a.example")
    for url, entry in (
        ("http://a.example/", "a.example"),
        ("http://b.example/calendar", "re:/calendar"),
        ("http://b.example/", None),
    ):
        answer = explain(config, [url], argparse.Namespace())
        assert answer.data["blacklisted"] == entry
        assert ("it is kept and not fetched" in answer.text) == (entry is not None)
