"""Redis stopped, cut back and away while a node lives."""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.support.crawling.crawls import Crawl, second_process_of, shares
from tests.support.crawling.verdicts import assert_complete, pause
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.support.running.processes import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.crawling.crawls import SimulatedWeb

pytestmark = [pytest.mark.fault, pytest.mark.timeout(900)]

FAST = {"BIGCRAWL_HOST_DELAY": 0.05, "BIGCRAWL_PARTITIONS": 64}
LEASE_S = 10


def ended_between(web: SimulatedWeb, start_ms: int, end_ms: int) -> Counter[str]:
    """URLs whose fetch ended in a stretch of time."""
    urls = [
        f"http://{fetch.host}:{web.saved.port}{fetch.target}"
        for fetch in web.exchanges()
        if start_ms <= fetch.end_ms <= end_ms
    ]
    return Counter(urls)


def test_redis_that_forgets_its_last_second_loses_nothing(tmp_path: Path, web: SimulatedWeb) -> None:
    """The AOF cut back by a second under a living node: coverage 1; only pages of the last 2 s may repeat.

    A page is of these seconds if it was acknowledged in them: a busy node does that some time after its fetch.
    """
    may_repeat: Counter[str] = Counter()
    with PrivateRedis() as server:
        crawl = Crawl(tmp_path / "crawl", web.seeds, {**FAST, "BIGCRAWL_REDIS_URL": server.url})
        with crawl:
            crawl.start()
            wait_until(lambda: len(web.exchanges()) > 100, "the crawl is under way")
            for _ in range(4):
                before_ms, in_process = round(time.time() * 1000), Counter(crawl.taken())
                pause(2.0)
                if crawl.process is None or crawl.process.poll() is not None:
                    break
                server.cut_aof(1)  # forgets between one and two seconds
                may_repeat.update(in_process | ended_between(web, before_ms, round(time.time() * 1000)))
            assert crawl.wait(600) == 0
    assert_complete(web.report(delay_ms=50), may_repeat)


def test_redis_that_forgets_more_than_two_durable_rounds_is_given_it_again(tmp_path: Path, web: SimulatedWeb) -> None:
    """Eight seconds back, with durable rounds of half a second: the crawl goes on by itself and comes to its end."""
    with PrivateRedis() as server:
        settings = {**FAST, "BIGCRAWL_REDIS_URL": server.url, "BIGCRAWL_DURABLE_SECONDS": 0.5}
        with Crawl(tmp_path / "crawl", web.seeds, settings) as crawl:
            crawl.start()
            wait_until(lambda: len(web.exchanges()) > 300, "the crawl is under way")
            pause(9)
            server.cut_aof(8)
            assert crawl.wait(240) == 0
            assert b"Traceback" not in crawl.log.read_bytes()
            assert b"partitions were claimed again" in crawl.log.read_bytes()
            assert crawl.starts == 1


def test_redis_stopped_for_thirty_seconds_loses_nothing(tmp_path: Path, web: SimulatedWeb) -> None:
    """SIGSTOP for 30 s, no reply and no error: the crawl goes on afterwards, complete and polite."""
    with PrivateRedis() as server:
        crawl = Crawl(tmp_path / "crawl", web.seeds, {**FAST, "BIGCRAWL_REDIS_URL": server.url})
        with crawl:
            crawl.start()
            wait_until(lambda: len(web.exchanges()) > 100, "the crawl is under way")
            server.pause()
            pause(30)
            server.resume()
            assert crawl.wait(600) == 0
            assert b"Traceback" not in crawl.log.read_bytes()
    assert_complete(web.report(delay_ms=50))


def test_redis_away_for_a_minute_under_three_nodes_loses_nothing(tmp_path: Path, web: SimulatedWeb) -> None:
    """Killed, and started on its AOF: nobody fetches without a lease, and only what was in process is fetched again."""
    with PrivateRedis() as server:
        settings = {"BIGCRAWL_HOST_DELAY": 0.5, "BIGCRAWL_PARTITIONS": 24, "BIGCRAWL_LEASE_SECONDS": LEASE_S}
        first = Crawl(tmp_path / "crawl", web.seeds, {**settings, "BIGCRAWL_REDIS_URL": server.url})
        with first, second_process_of(first) as second, second_process_of(first, "third") as third:
            nodes = (first, second, third)
            first.start()
            wait_until(lambda: len(web.exchanges()) > 20, "the crawl is under way")
            second.start()
            third.start()
            wait_until(lambda: shares(first) == [8, 8, 8], "each node owns a third")
            known = len(web.exchanges())
            wait_until(lambda: len(web.exchanges()) > known + 60, "all fetch")
            server.client.execute_command("CLIENT", "PAUSE", 60_000, "WRITE")
            may_repeat = Counter(first.taken())
            server.aof_bytes()  # all is in the file
            server.kill()
            killed_ms = round(time.time() * 1000)
            pause(60)
            started_ms = round(time.time() * 1000)
            server.start()
            assert [node.wait(300) for node in nodes] == [0, 0, 0]
            for node in nodes:
                log = node.log.read_text()
                assert "Traceback" not in log
                assert "waiting: Redis does not answer" in log
                assert "the crawl continues" in log
    away = [fetch for fetch in web.exchanges() if killed_ms + LEASE_S * 1000 < fetch.start_ms < started_ms]
    assert not away
    assert_complete(web.report(delay_ms=500), may_repeat)


REFUSALS = {
    "too-few-replicas": (
        ("CONFIG", "SET", "min-replicas-to-write", "1"),
        ("CONFIG", "SET", "min-replicas-to-write", "0"),
    ),
    "out-of-memory": (("CONFIG", "SET", "maxmemory", "1"), ("CONFIG", "SET", "maxmemory", "0")),
    "a-replica": (("REPLICAOF", "127.0.0.1", "1"), ("REPLICAOF", "NO", "ONE")),
    "a-long-script": (
        ("CONFIG", "SET", "busy-reply-threshold", "1"),
        ("CONFIG", "SET", "busy-reply-threshold", "5000"),
    ),
}
LONG_SCRIPT = "local n = 0; for i = 1, 3000000 do n = n + i end; return n"


def refuse_for_moments(server: PrivateRedis, crawl: Crawl, how: str, moments: random.Random) -> int:
    """Have the server refuse writes again and again, for parts of a second, while the crawl runs; how often it did."""
    begin, end = REFUSALS[how]
    times = 0
    while crawl.process is not None and crawl.process.poll() is None:
        pause(moments.uniform(0.05, 0.4))
        server.client.execute_command(*begin)
        times += 1
        if how == "a-long-script":
            server.client.eval(LONG_SCRIPT, 0)
        else:
            pause(moments.uniform(0.001, 0.2))
        server.client.execute_command(*end)
    return times


@pytest.mark.parametrize("how", REFUSALS)
def test_redis_that_refuses_for_moments_loses_nothing(tmp_path: Path, web: SimulatedWeb, how: str) -> None:
    """Any command of any pipeline may be refused: status 0 means that all was fetched, each page once."""
    with PrivateRedis() as server:
        crawl = Crawl(tmp_path / "crawl", web.seeds, {**FAST, "BIGCRAWL_REDIS_URL": server.url})
        with crawl:
            crawl.start()
            wait_until(lambda: len(web.exchanges()) > 20, "the crawl is under way")
            assert refuse_for_moments(server, crawl, how, random.Random(how)) > 5
            assert crawl.wait(60) == 0
            assert b"Traceback" not in crawl.log.read_bytes()
    assert_complete(web.report(delay_ms=50))


def test_redis_that_forgets_more_than_the_crawl_keeps_loses_nothing(tmp_path: Path, web: SimulatedWeb) -> None:
    """Eight seconds: pages are fetched again whose end is forgotten, and their links are sent again."""
    with PrivateRedis() as server:
        settings = {**FAST, "BIGCRAWL_REDIS_URL": server.url, "BIGCRAWL_SPEED": "30/s"}
        crawl = Crawl(tmp_path / "crawl", web.seeds, settings)
        with crawl:
            crawl.start()
            # More than what is forgotten: the crawl's own record must not be among it.
            wait_until(lambda: len(web.exchanges()) > 400, "the crawl is under way", 120)
            may_repeat = Counter(dict.fromkeys(web.expected(), 2))
            server.cut_aof(8)
            assert crawl.wait(240) == 0
    assert_complete(web.report(delay_ms=50), may_repeat)


@pytest.mark.parametrize("state", ["running", "redis-stopped", "redis-killed"])
def test_sigterm_ends_the_crawl_within_ten_seconds(tmp_path: Path, web: SimulatedWeb, state: str) -> None:
    """At random moments, with Redis well, hanging or gone, SIGTERM ends the node in 10 s and nothing is lost."""
    moments = random.Random(3)
    may_repeat: Counter[str] = Counter()
    with PrivateRedis() as server:
        crawl = Crawl(tmp_path / "crawl", web.seeds, {**FAST, "BIGCRAWL_REDIS_URL": server.url})
        with crawl:
            for _ in range(4):
                crawl.start()
                pause(moments.uniform(0.5, 4))
                if state == "redis-stopped":
                    server.pause()
                if state == "redis-killed":
                    server.kill()
                pause(moments.uniform(0, 1))
                crawl.terminate()
                try:
                    crawl.wait(10)
                finally:
                    if state == "redis-stopped":
                        server.resume()
                    if state == "redis-killed":
                        server.start()
                may_repeat.update(crawl.taken())
            assert crawl.run(180) == 0
    assert_complete(web.report(delay_ms=50), may_repeat)


def test_sigterm_does_not_wait_for_a_slow_server(tmp_path: Path) -> None:
    """A server that accepts and never answers holds the end up by BIGCRAWL_STOP_GRACE, not by its timeout."""
    import socket

    with socket.create_server(("127.44.0.1", 0)) as silent:
        url = f"http://127.44.0.1:{silent.getsockname()[1]}/"
        with Crawl(tmp_path / "crawl", [url], dict(FAST)) as crawl:
            crawl.start()
            silent.settimeout(20)
            connection, _ = silent.accept()
            crawl.terminate()
            assert crawl.wait(10) in (0, -signal.SIGTERM)
            connection.close()
