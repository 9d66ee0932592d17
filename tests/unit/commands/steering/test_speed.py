"""`scrapy frontier speed`: what is in force, and plans that are set and taken away while a crawl runs."""

from __future__ import annotations

import argparse
import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.commands.steering.pace import speed, speed_text
from bigcrawl.exceptions import ConfigError
from tests.unit.commands.steering.test_budget import begun
from tests.unit.scheduler.world import make_config

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.config import Config


@pytest.fixture
def config(tmp_path: Path, crawl_name: str, redis_url: str) -> Config:
    made = make_config(tmp_path, crawl_name, redis_url, speed="70/s")

    async def begin() -> None:
        async with begun(made):
            pass

    asyncio.run(begin())
    return made


def ask(config: Config, *words: str, unset: bool = False) -> dict[str, Any]:
    answer = speed(config, words, argparse.Namespace(unset=unset))
    assert answer.status == 0
    json.dumps(answer.data)
    assert answer.text == speed_text(answer.data)
    return answer.data


def test_tells_what_is_in_force_and_where_it_comes_from(config: Config) -> None:
    """Without a word: the settings' plan; by hand: the other one, until it is unset."""
    assert ask(config)["now"] == "70 pages/s"
    assert ask(config, "2MB/s", "90/s") | {"time_zone": ""} == {
        "now": "90 pages/s and 2 MB/s",
        "pages_per_s": 90,
        "bytes_per_s": 2e6,
        "paused": [],
        "by_hand": "2MB/s 90/s",
        "settings": "70/s",
        "time_zone": "",
    }
    assert ask(config)["now"] == "90 pages/s and 2 MB/s"
    assert ask(config, "0/s")["now"] == "paused"
    assert ask(config, "unlimited")["pages_per_s"] is None
    assert ask(config, unset=True)["now"] == "70 pages/s"


def test_a_text_that_is_no_plan_changes_nothing(config: Config) -> None:
    """One line says what is wrong, before anything is written."""
    ask(config, "50/s")
    with pytest.raises(ConfigError, match="scrapy frontier speed has 'slowly'"):
        ask(config, "slowly")
    with pytest.raises(ConfigError, match="--unset removes the speed set by hand"):
        ask(config, "5/s", unset=True)
    assert ask(config)["by_hand"] == "50/s"


def test_the_answer_for_a_person_names_all_three(config: Config) -> None:
    """What holds now, what was set by hand, what the settings say."""
    text = speed(config, ["50/s 08:00-18:00; 60/s"], argparse.Namespace(unset=False)).text
    assert "by hand    50/s 08:00-18:00; 60/s" in text
    assert "settings   70/s" in text
    assert "time zone  UTC" in text
