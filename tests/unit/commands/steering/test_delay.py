"""`scrapy frontier delay NAME`: which delays are in force for a name, and rules that are set while a crawl runs."""

from __future__ import annotations

import argparse
import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.commands.steering.pace import delay, delay_options, delay_text
from bigcrawl.exceptions import ConfigError
from tests.unit.commands.steering.test_budget import begun
from tests.unit.scheduler.world import make_config

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.config import Config

RULES = {"ruled.com": {"delay": 7, "pld_delay": 0.5}}


@pytest.fixture
def config(tmp_path: Path, crawl_name: str, redis_url: str) -> Config:
    made = make_config(tmp_path, crawl_name, redis_url, delay_rules=RULES, host_delay=1)

    async def begin() -> None:
        async with begun(made):
            pass

    asyncio.run(begin())
    return made


def ask(config: Config, name: str, *words: str, unset: bool = False) -> dict[str, Any]:
    parser = argparse.ArgumentParser()
    delay_options(parser)
    options = parser.parse_args(words)
    options.unset = unset
    answer = delay(config, [name], options)
    json.dumps(answer.data)
    assert answer.text == delay_text(answer.data)
    return answer.data


def test_tells_what_is_in_force(config: Config) -> None:
    """The settings' delay, or the rule's; hosts below a PLD have its rule."""
    assert ask(config, "other.com") == {
        "name": "other.com",
        "rule": None,
        "rule_of_settings": None,
        "delay": 1,
        "pld_delay": 0,
    }
    assert ask(config, "www.ruled.com")["delay"] == 7
    assert ask(config, "www.ruled.com")["pld_delay"] == 0.5


def test_a_rule_is_set_part_by_part_and_taken_away(config: Config) -> None:
    """What is not named stays; unset, a rule of the settings is gone as well, and set again it is the crawl's own."""
    assert ask(config, "ruled.com", "--delay", "2.5")["rule"] == {"delay": 2.5, "pld_delay": 0.5}
    assert ask(config, "www.ruled.com", "--delay", "0")["delay"] == 0
    assert ask(config, "m.ruled.com")["delay"] == 2.5
    assert ask(config, "ruled.com", unset=True)["rule"] is None
    assert ask(config, "m.ruled.com")["delay"] == 1
    assert ask(config, "*.ruled.com", "--delay", "3")["rule"] == {"delay": 3}
    assert ask(config, "m.ruled.com")["delay"] == 3


@pytest.mark.parametrize(("name", "words"), [("re:x", ()), ("a/b", ()), ("a.com", ("--delay", "-1"))])
def test_what_makes_no_sense_changes_nothing(config: Config, name: str, words: tuple[str, ...]) -> None:
    """One line says what is wrong."""
    with pytest.raises(ConfigError, match="scrapy frontier delay"):
        ask(config, name, *words)
    with pytest.raises(ConfigError, match="--unset removes the whole rule"):
        ask(config, "a.com", "--delay", "1", unset=True)
