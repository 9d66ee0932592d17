"""A master that Sentinel names: followed when another server takes its place."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
import redis

from bigcrawl.exceptions import ConfigError, TransientStoreError
from bigcrawl.redisdb.client import RedisClient
from bigcrawl.redisdb.keys import PartitionKeys
from bigcrawl.redisdb.reply_errors import RedisRestartedError
from tests.support.crawling.verdicts import pause
from tests.support.redis_servers.client_runs import append, run
from tests.support.redis_servers.sentinels import SERVICE, Watched
from tests.support.running.processes import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def watched() -> Iterator[Watched]:
    with Watched(down_after_ms=5_000) as made:
        yield made


def test_master_is_asked_for_and_followed(watched: Watched, crawl_name: str) -> None:
    """The new master may lack writes, so it counts as restarted. One of two sentinels is enough."""
    keys = PartitionKeys(crawl_name, 1)

    async def work(client: RedisClient) -> None:
        assert await client.run([append(keys, 1)]) == [True]
        before = client.server_run_id
        with redis.Redis(port=watched.replica_port) as heir:
            wait_until(lambda: heir.xlen(keys.inbox) == 1, "the replica has it")
        watched.kill_master()
        with pytest.raises(TransientStoreError):
            await client.run([append(keys, 2)])
        for _ in range(3_000):  # a sentinel that got no CPU for two seconds trusts no clock for half a minute
            try:
                await client.ping()
            except RedisRestartedError:
                break
            except TransientStoreError:
                pause(0.1)
        else:
            pytest.fail("nobody has taken the master's place")
        await client.accept_restart()
        assert client.server_run_id not in ("", before)
        assert await client.run([append(keys, 2)]) == [True]
        assert await client.command("XLEN", keys.inbox) == 2
        with redis.Redis(port=watched.replica_port) as heir:
            assert heir.xlen(keys.inbox) == 2

    run(watched.url, work)


def test_sentinels_that_do_not_answer_or_do_not_know_the_service_are_waited_for(watched: Watched) -> None:
    for url in (f"redis+sentinel://127.0.0.1:1/{SERVICE}/0", watched.url.replace(SERVICE, "other")):

        async def work(client: RedisClient) -> None:
            with pytest.raises(TransientStoreError, match="No master found"):
                await client.ping()

        run(url, work)


@pytest.mark.parametrize(
    "url", ["redis+sentinel://h:1", "redis+sentinel:///crawls/0", "redis+sentinel://u:pa@h:x/crawls/0"]
)
def test_url_without_sentinels_or_service_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="BIGCRAWL_REDIS_URL") as error:
        RedisClient(url)
    assert "pa@" not in str(error.value)
    assert os.linesep not in str(error.value)
