"""A master that Sentinel names: followed when another server takes its place."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import redis

from bigcrawl.exceptions import ConfigError, TransientStoreError
from bigcrawl.redisdb.client import RedisClient, RedisRestartedError
from bigcrawl.redisdb.keys import PartitionKeys
from tests.support.client_runs import append, run
from tests.support.processes import spawn, wait_until
from tests.support.redis_cluster import free_ports
from tests.support.redis_server import binary_under_test
from tests.support.verdicts import pause

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

SERVICE = "crawls"


class Watched:
    """A master, its replica, and a sentinel that makes the replica the master a second after the master's death."""

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="bigcrawl-sentinel-"))
        self.master_port, self.replica_port, self.port = free_ports(3)
        self.processes: dict[int, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        self._spawn(self.master_port)
        self._spawn(self.replica_port, "--replicaof", "127.0.0.1", str(self.master_port))
        config = self.directory / "sentinel.conf"
        lines = [
            f"sentinel monitor {SERVICE} 127.0.0.1 {self.master_port} 1",
            f"sentinel down-after-milliseconds {SERVICE} 1000",
            f"sentinel failover-timeout {SERVICE} 3000",
        ]
        config.write_text("\n".join(lines) + "\n")
        wait_until(self.link_is_up, "a synced replica")
        self._spawn(self.port, "--sentinel", config=config)
        wait_until(self.knows_replica, "a sentinel that knows the replica")

    def link_is_up(self) -> bool:
        with contextlib.suppress(redis.ConnectionError), redis.Redis(port=self.replica_port) as client:
            return bool(client.info("replication").get("master_link_status") == "up")
        return False

    def knows_replica(self) -> bool:
        with contextlib.suppress(redis.ConnectionError), redis.Redis(port=self.port) as client:
            return bool(client.sentinel_slaves(SERVICE))
        return False

    def kill_master(self) -> None:
        self.processes[self.master_port].kill()
        self.processes[self.master_port].wait()

    @property
    def url(self) -> str:
        return f"redis+sentinel://127.0.0.1:{self.port},127.0.0.1:1/{SERVICE}/0"

    def close(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()
        shutil.rmtree(self.directory)

    def _spawn(self, port: int, *options: str, config: Path | None = None) -> None:
        directory = self.directory / str(port)
        directory.mkdir()
        words = [str(config)] if config else []
        words += ["--port", str(port), "--bind", "127.0.0.1", "--dir", str(directory), *options]
        words += [] if config else ["--save", "", "--repl-diskless-sync-delay", "0"]
        with (directory / "output").open("wb") as said:
            self.processes[port] = spawn([binary_under_test(), *words], cwd=directory, stdout=said, stderr=said)


@pytest.fixture
def watched() -> Iterator[Watched]:
    made = Watched()
    try:
        made.start()
        yield made
    finally:
        made.close()


def test_master_is_asked_for_and_followed(watched: Watched, crawl_name: str) -> None:
    """The new master may lack writes, so it counts as restarted. One of two sentinels is enough."""
    keys = PartitionKeys(crawl_name, 1)

    async def work(client: RedisClient) -> None:
        assert await client.run([append(keys, 1)]) == [True]
        before = client.server
        pause(0.5)  # the replica lags by milliseconds
        watched.kill_master()
        with pytest.raises(TransientStoreError):
            await client.run([append(keys, 2)])
        for _ in range(600):
            try:
                await client.ping()
            except RedisRestartedError:
                break
            except TransientStoreError:
                pause(0.1)
        await client.accept_restart()
        assert client.server not in ("", before)
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
