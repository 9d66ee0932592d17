"""The settings that a node tells those who show its crawl."""

from __future__ import annotations

import json

from bigcrawl.config import read_config, with_settings

SET = {
    "BIGCRAWL_BUDGET_POLICY": "none",
    "BIGCRAWL_BUDGET_RULES": {"a.example": {"pages": 5}},
    "BIGCRAWL_BLACKLIST": ["a.example", "b.example"],
    "BIGCRAWL_HOST_DELAY": 3,
    "BIGCRAWL_REVISIT": "periodic",
    "BIGCRAWL_MAX_PAGES": 7,
    "CONCURRENT_REQUESTS": "8",
    "USER_AGENT": "bot/1.0",
}
OWN = {
    "BIGCRAWL_CRAWL": "own",
    "BIGCRAWL_REDIS_URL": "redis://:secret@a.example/",
    "BIGCRAWL_STATE_DIR": "/own",
    "BIGCRAWL_WARC_DIR": "/own/warc",
    "BIGCRAWL_DASHBOARD_TOKEN": "secret" * 8,
}


def test_settings_come_back_as_they_were() -> None:
    """Through JSON, with what is the other process's own left to it."""
    told = json.loads(json.dumps(read_config({**SET, **OWN, "BIGCRAWL_STATE_DIR": "/other"}).in_force))
    assert read_config(SET).in_force == told
    assert with_settings(read_config({**OWN, "BIGCRAWL_HOST_DELAY": 1}), told) == read_config({**SET, **OWN})
    assert "secret" not in json.dumps(told)


def test_setting_of_a_later_version_is_left_out() -> None:
    assert with_settings(read_config({}), {"BIGCRAWL_LATER": 1, "BIGCRAWL_HOST_DELAY": 2}) == read_config(
        {"BIGCRAWL_HOST_DELAY": 2}
    )
