"""A node that starts waits for what passes by itself, says so, and can be told to stop meanwhile."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from tests.support.crawling.crawls import Crawl
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.support.running.processes import wait_until

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.timeout(600)


def test_node_waits_for_a_redis_that_is_not_there_yet(tmp_path: Path) -> None:
    """Refused connections at the start are waited for; then the crawl begins."""
    server = PrivateRedis()
    with Crawl(tmp_path / "crawl", ["http://127.44.0.1:1/"], {"BIGCRAWL_REDIS_URL": server.url}) as crawl:
        crawl.start()
        waits = b"cannot start yet: Redis does not answer"
        wait_until(lambda: waits in crawl.log.read_bytes(), "it waits", timeout_s=300)
        with server:
            wait_until(lambda: server.client.exists("bigcrawl:{test}:nodes") == 1, "the node has joined", timeout_s=300)
            crawl.terminate()
            assert crawl.wait(300) == 0


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_the_wait(tmp_path: Path, how: signal.Signals) -> None:
    """A node that waits for its Redis is not waited for: it ends at once, as it was told."""
    settings = {"BIGCRAWL_REDIS_URL": "unix:///nowhere/redis.sock", "BIGCRAWL_START_WAIT": 3600}
    with Crawl(tmp_path / "crawl", ["http://127.44.0.1:1/"], settings) as crawl:
        process = crawl.start()
        wait_until(lambda: b"cannot start yet" in crawl.log.read_bytes(), "it waits", timeout_s=300)
        process.send_signal(how)
        assert crawl.wait(300) == 0
        assert b"Traceback" not in crawl.log.read_bytes()
