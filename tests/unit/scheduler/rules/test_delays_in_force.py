"""What the start of a crawl says of its delays: what is in force, and by which settings, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.scheduler.rules.delay_rules import delays_text
from tests.unit.scheduler.world import make_config

if TYPE_CHECKING:
    from pathlib import Path

HOST = "a host rests 1 s after each fetch (BIGCRAWL_HOST_DELAY)"
SERVER = "fetches from one IP address start at least 0.5 s apart (BIGCRAWL_SERVER_DELAY)"
ROBOTS = "a robots.txt may ask for up to 60 s (BIGCRAWL_CRAWL_DELAY_MAX)"
DEFAULTS: dict[str, Any] = {"host_delay": 1, "server_delay": 0.5, "robots": "obey"}


@pytest.mark.parametrize(
    ("settings", "ruled", "parts"),
    [
        ({}, 0, [HOST, SERVER, ROBOTS]),
        ({"host_delay": 0}, 0, [SERVER, ROBOTS]),
        ({"host_delay": 0, "server_delay": 0}, 0, [ROBOTS]),
        ({"server_delay": 0, "crawl_delay_max": 0}, 0, [HOST]),
        ({"host_delay": 0, "server_delay": 0, "robots": "ignore-i-own-these-hosts"}, 0, ["none"]),
        (
            {"host_connections": 4, "robots": "ignore-i-own-these-hosts"},
            0,
            ["fetches from one host start at least 1 s apart (BIGCRAWL_HOST_DELAY)", SERVER],
        ),
        (
            {"host_delay_min": 0.1, "server_delay": 0},
            0,
            [
                HOST.replace(" (", ", down to 0.1 s as budgets grow (").replace(")", ", BIGCRAWL_HOST_DELAY_MIN)"),
                ROBOTS,
            ],
        ),
        (
            {"pld_delay": 2, "download_factor": 10, "speed": "10 pages/s"},
            3,
            [
                HOST,
                SERVER,
                "fetches from one pay-level domain start at least 2 s apart (BIGCRAWL_PLD_DELAY)",
                "a host rests at least 10 times as long as its last download took (BIGCRAWL_DOWNLOAD_FACTOR)",
                "3 hosts or domains have delays of their own (BIGCRAWL_DELAY_RULES, `scrapy frontier delay`)",
                ROBOTS,
                "the whole crawl keeps to a speed of 10 pages/s (BIGCRAWL_SPEED)",
            ],
        ),
    ],
)
def test_delays_are_said_with_the_settings_that_make_them(
    tmp_path: Path, settings: dict[str, Any], ruled: int, parts: list[str]
) -> None:
    """In one line."""
    config = make_config(tmp_path, "c", **DEFAULTS | settings)
    assert delays_text(config, ruled) == "delays: " + "; ".join(parts)
