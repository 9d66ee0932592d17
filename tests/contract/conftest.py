"""Where the scripts' contract is checked: on one server, and on a Redis Cluster of three masters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.redis_servers.script_world import ScriptRunner, ScriptWorld
from tests.unit.redisdb.test_lua_contract import SCRIPT_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.redis_servers.redis_server import PrivateRedis


@pytest.fixture(scope="module", params=["server", "cluster"])
def runner(request: pytest.FixtureRequest, redis_server: PrivateRedis) -> Iterator[ScriptRunner]:
    """Every script loaded on the one server, or on all three masters."""
    if request.param == "server":
        yield ScriptRunner(redis_server.client, SCRIPT_NAMES)
        return
    with request.getfixturevalue("redis_cluster").client() as client:
        yield ScriptRunner(client, SCRIPT_NAMES)


@pytest.fixture
def world(runner: ScriptRunner, crawl_name: str) -> ScriptWorld:
    """A fresh partition, owned by node "a"."""
    made = ScriptWorld(runner, crawl_name)
    made.claim()
    return made
