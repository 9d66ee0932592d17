"""A master of Redis is killed under a crawl, and nobody but its like replaces it: sentinels, or a cluster's masters."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.support.crawling.crawls import Crawl, second_process_of, shares
from tests.support.crawling.verdicts import refetched_without_cause
from tests.support.redis_servers.acl_rules import make_cluster_user
from tests.support.redis_servers.redis_cluster import PrivateCluster
from tests.support.redis_servers.sentinels import Watched
from tests.support.running.processes import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    import redis

    from tests.support.crawling.crawls import SimulatedWeb

pytestmark = [pytest.mark.fault, pytest.mark.timeout(900)]

DELAY_MS = 200
SILENT_MS = 5_000  # so long a server that lives does not keep another one waiting
SETTINGS = {"BIGCRAWL_HOST_DELAY": DELAY_MS / 1000, "BIGCRAWL_PARTITIONS": 24, "BIGCRAWL_LEASE_SECONDS": 15}
NAME = "elections"


def assert_ended_well(web: SimulatedWeb, nodes: list[Crawl], lost_ms: list[int]) -> None:
    """Coverage 1, polite, by itself; and twice was fetched only what the replica may not have heard of."""
    assert [node.wait(300) for node in nodes] == [0 for _ in nodes]
    report = web.report(delay_ms=DELAY_MS)
    assert report.kinds <= {"refetched"}, str(report)
    assert refetched_without_cause(web, report, lost_ms) == []
    for node in nodes:
        said = node.log.read_text()
        assert "Traceback" not in said
        assert "Spider closed (finished)" in said
        assert "Redis was restarted; partitions were claimed again" in said


def test_sentinels_elect_another_master_under_two_nodes(tmp_path: Path, web: SimulatedWeb) -> None:
    """Three sentinels, kill -9 of the master in mid-crawl: the nodes find the new one, and no URL is lost."""
    with Watched(sentinels=3, down_after_ms=SILENT_MS) as watched:
        settings = {**SETTINGS, "BIGCRAWL_REDIS_URL": watched.url}
        with Crawl(tmp_path / "crawl", web.seeds, settings, name=NAME) as first, second_process_of(first) as second:
            first.start()
            wait_until(lambda: len(web.exchanges()) > 20, "the crawl is under way")
            second.start()
            wait_until(lambda: shares(first) == [12, 12], "each node owns half")
            known = len(web.exchanges())
            wait_until(lambda: len(web.exchanges()) > known + 100, "both fetch")
            assert watched.masters() == {watched.master_port}
            lost_ms = round(time.time() * 1000)
            watched.kill_master()
            wait_until(lambda: watched.masters() == {watched.replica_port}, "the replica is elected")
            assert_ended_well(web, [first, second], [lost_ms])


def test_cluster_elects_another_master_under_two_nodes_with_few_rights(tmp_path: Path, web: SimulatedWeb) -> None:
    """Three masters with a replica each, and a user with no right that docs/operations.md does not give it."""
    with PrivateCluster(replicas=True, node_timeout_ms=SILENT_MS) as cluster:
        settings = {**SETTINGS, "BIGCRAWL_REDIS_URL": make_cluster_user(cluster, "node", NAME)}
        with Crawl(tmp_path / "crawl", web.seeds, settings, name=NAME) as first, second_process_of(first) as second:
            operator = second_process_of(first, "operator")
            operator.settings["BIGCRAWL_REDIS_URL"] = make_cluster_user(cluster, "operator", NAME)
            first.start()
            wait_until(lambda: len(web.exchanges()) > 20, "the crawl is under way")
            second.start()
            wait_until(lambda: shares(operator) == [12, 12], "each node owns half")
            known = len(web.exchanges())
            wait_until(lambda: len(web.exchanges()) > known + 100, "both fetch")
            lost_ms = round(time.time() * 1000)
            cluster.elect(0)
            assert_ended_well(web, [first, second], [lost_ms])
        refused = [entry for server in cluster.masters for entry in _refused(server.client)]
        assert refused == []


def _refused(client: redis.Redis) -> list[tuple[str, str]]:
    """User, and command or key. The library does without SETINFO."""
    log = [(str(entry["username"]), str(entry["object"])) for entry in client.acl_log()]
    return [entry for entry in log if entry[1] != "client|setinfo"]
