"""A Redis that cannot keep a crawl is refused or said to be so, each with the remedy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bigcrawl.exceptions import ConfigError
from bigcrawl.redisdb.server_needs import faults_of, look_at_needs
from tests.support.client_runs import run
from tests.support.redis_server import PrivateRedis

if TYPE_CHECKING:
    from bigcrawl.redisdb.client import RedisClient

GOOD = {"maxmemory": "1000", "maxmemory_policy": "noeviction", "aof_enabled": "1", "role": "master"}


def test_server_as_the_operations_page_has_it_lacks_nothing() -> None:
    """Nor does one of which nothing is known."""
    assert faults_of(GOOD) == []
    assert faults_of({}) == []
    assert faults_of({**GOOD, "role": "slave", "slave_read_only": "1"}) == [], "it may be its master's successor soon"


@pytest.mark.parametrize(
    ("info", "remedy"),
    [
        ({"maxmemory_policy": "allkeys-lru"}, "maxmemory-policy noeviction"),
        ({"role": "slave", "slave_read_only": "0"}, "the master's address"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_server_that_loses_urls_when_all_is_well_is_refused(info: dict[str, str], remedy: str) -> None:
    """The error names what is wrong and what to do."""
    with pytest.raises(ConfigError, match=remedy):
        faults_of({**GOOD, **info})


@pytest.mark.parametrize(
    ("info", "remedy"),
    [
        ({"maxmemory_policy": "volatile-ttl"}, "maxmemory-policy noeviction"),
        ({"maxmemory": "0", "maxmemory_policy": "allkeys-lfu"}, "maxmemory-policy noeviction"),
        ({"aof_enabled": "0"}, "appendonly yes"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_server_that_may_lose_them_is_told_of(info: dict[str, str], remedy: str) -> None:
    """In one line."""
    [fault] = faults_of({**GOOD, **info})
    assert remedy in fault
    assert "\n" not in fault


def test_real_server_is_read() -> None:
    """As Debian ships it, without AOF; and with a policy that evicts."""
    with PrivateRedis(aof=False) as server:

        async def work(client: RedisClient) -> None:
            [fault] = await look_at_needs(client)
            assert "AOF" in fault
            server.client.config_set("maxmemory-policy", "allkeys-random")
            server.client.config_set("maxmemory", "100mb")
            with pytest.raises(ConfigError, match="allkeys-random"):
                await look_at_needs(client)

        run(server.url, work)
