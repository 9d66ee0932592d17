"""P1 and P2 by force: nodes and Redis killed at random moments of a crawl whose answer is known."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from bigcrawl.redisdb.embedded import EmbeddedServer
from tests.support.crawling.crawls import Crawl
from tests.support.crawling.verdicts import assert_complete, pause, without_untold_gaps
from tests.support.running.processes import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.crawling.crawls import SimulatedWeb

pytestmark = [pytest.mark.fault, pytest.mark.timeout(900)]

KILLS = int(os.environ.get("BIGCRAWL_TEST_KILLS", "20"))
SEED = int(os.environ.get("BIGCRAWL_TEST_SEED", "1"))
DELAY_MS = 50
FAST = {"BIGCRAWL_HOST_DELAY": DELAY_MS / 1000, "BIGCRAWL_PARTITIONS": 64}


def test_killed_nodes_lose_nothing_and_repeat_only_what_was_in_process(tmp_path: Path, web: SimulatedWeb) -> None:
    """After kill -9 at random moments coverage is 1; only URLs read as taken after a kill are fetched again."""
    moments = random.Random(SEED)
    may_repeat: Counter[str] = Counter()
    with Crawl(tmp_path / "crawl", web.seeds, dict(FAST)) as crawl:
        for _ in range(KILLS):
            crawl.start()
            pause(moments.uniform(0.3, 4.0))
            crawl.kill()
            may_repeat.update(crawl.taken() if crawl.redis_directory.exists() else [])
        assert crawl.run() == 0
    assert_complete(without_untold_gaps(web.report(delay_ms=DELAY_MS), DELAY_MS), may_repeat)


def has_ended(crawl: Crawl) -> bool:
    return crawl.process is None or crawl.process.poll() is not None


def test_resumed_crawl_fetches_as_soon_as_a_new_one(tmp_path: Path, web: SimulatedWeb) -> None:
    """After kill -9 the same command fetches within 5 s, or twice what the first start took if that is more."""
    with Crawl(tmp_path / "crawl", web.seeds, dict(FAST)) as crawl:
        began_s = time.monotonic()
        crawl.start()
        wait_until(lambda: len(web.exchanges()) > 10, "the first pages")
        first_s = time.monotonic() - began_s
        wait_until(lambda: len(web.exchanges()) > 200, "the crawl is under way")
        crawl.kill()
        before = len(web.exchanges())
        crawl.start()
        wait_until(lambda: len(web.exchanges()) > before + 10, "fetching goes on", timeout_s=max(5, 2 * first_s))


def test_killed_redis_loses_nothing(tmp_path: Path, web: SimulatedWeb) -> None:
    """kill -9 of the embedded server in mid-crawl: the node starts it again and nothing is lost or repeated."""
    moments = random.Random(SEED)
    with Crawl(tmp_path / "crawl", web.seeds, dict(FAST)) as crawl:
        crawl.start()
        wait_until(lambda: len(web.exchanges()) > 100, "the crawl is under way")
        server, kills = EmbeddedServer(crawl.redis_directory), 0
        for _ in range(KILLS):
            pause(moments.uniform(0.2, 1.0))
            # On a busy machine the one before is still to be started again.
            wait_until(lambda: has_ended(crawl) or server.process.pid is not None, "the server is up")
            pid = server.process.pid
            if has_ended(crawl) or pid is None:
                break
            os.kill(pid, signal.SIGKILL)
            kills += 1
        assert kills == KILLS, "the crawl ended before all kills"
        assert crawl.wait(120) == 0
    assert_complete(web.report(delay_ms=DELAY_MS), Counter())
