"""Where contracts are checked: of scripts on one server and a cluster of three masters, of stores on real servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.redis_servers.script_world import ScriptRunner, ScriptWorld
from tests.support.servers.gs_server import gs_server
from tests.support.servers.s3_server import s3_server
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


@pytest.fixture(scope="module")
def s3_endpoint() -> Iterator[str]:
    """The address of a server of the S3 protocol."""
    with s3_server() as url:
        yield url


@pytest.fixture(scope="module")
def gs_endpoint() -> Iterator[str]:
    """The address of a server of Google Cloud Storage's protocol."""
    with gs_server() as url:
        yield url
