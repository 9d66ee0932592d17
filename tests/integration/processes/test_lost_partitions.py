"""Crawls of two nodes in which the files of some partitions are nowhere left, by BIGCRAWL_LOST_PARTITIONS."""

from __future__ import annotations

import shutil
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from bigcrawl.redisdb.keys import PartitionKeys
from tests.support.crawling.crawls import Crawl, SimulatedWeb, second_process_of, shares
from tests.support.crawling.verdicts import assert_complete
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.support.running.processes import no_strays_below, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.fault, pytest.mark.timeout(900)]

DELAY_MS = 300
PARTITIONS = 16
SETTINGS = {
    "BIGCRAWL_STORE_SECONDS": 2,
    "BIGCRAWL_HOST_DELAY": DELAY_MS / 1000,
    "BIGCRAWL_PARTITIONS": PARTITIONS,
    "BIGCRAWL_LEASE_SECONDS": 8,
    "BIGCRAWL_FETCH_DEADLINE": 8,
}


@pytest.fixture
def server() -> Iterator[PrivateRedis]:
    with PrivateRedis() as one:
        yield one


@pytest.fixture
def web(tmp_path: Path) -> Iterator[SimulatedWeb]:
    with no_strays_below(tmp_path), SimulatedWeb(tmp_path / "web", hosts=16, pages=30) as one:
        yield one


def start_both(first: Crawl, second: Crawl, web: SimulatedWeb) -> None:
    """Both nodes own half of the partitions, and fetch."""
    first.start()
    wait_until(lambda: len(web.exchanges()) > 40, "the crawl is under way")
    second.start()
    wait_until(lambda: shares(second) == [PARTITIONS // 2] * 2, "each node owns half")
    before = len(web.exchanges())
    wait_until(lambda: len(web.exchanges()) > before + 40, "both fetch")


def names_of(partitions: list[int]) -> list[str]:
    return [f"p{partition:04d}" for partition in partitions]


def in_use(crawl: Crawl) -> set[int]:
    """The partitions that have admitted any URL. The files of others can be lost without harm."""
    with crawl.redis() as client:
        return {p for p in range(PARTITIONS) if client.hget(PartitionKeys(crawl.name, p).state, "committed")}


def partitions_of(crawl: Crawl) -> list[int]:
    """Those in use that Redis gives to a node which is alone in its state directory."""
    [lock] = (crawl.directory / "state" / crawl.name / "nodes").glob("*.lock")
    with crawl.redis() as client:
        owners = {p: client.hget(PartitionKeys(crawl.name, p).owner, "node") for p in in_use(crawl)}
    return sorted(p for p, owner in owners.items() if owner == lock.stem.encode())


def missing(crawl: Crawl) -> int:
    return int(crawl.status()["partitions"]["missing"])


def test_crawl_goes_on_without_partitions_whose_files_are_gone_and_ends_with_them(
    tmp_path: Path, web: SimulatedWeb, server: PrivateRedis
) -> None:
    """One disk, no store: all else is fetched, and both nodes say what is left. Put back, the files lose nothing."""
    settings = {**SETTINGS, "BIGCRAWL_REDIS_URL": server.url}
    with Crawl(tmp_path / "first", web.seeds, settings) as first, second_process_of(first) as second:
        start_both(first, second, web)
        for node in (first, second):
            node.kill()
        may_repeat = Counter(first.taken())
        state, away = first.directory / "state" / first.name, tmp_path / "away"
        away.mkdir()
        lost = names_of(sorted(in_use(first))[::2])
        for name in lost:
            (state / name).rename(away / name)
        first.start()
        second.start()
        assert [node.wait(300) for node in (first, second)] == [1, 1]
        before = len(web.exchanges())
        said = first.log.read_text() + second.log.read_text()
        assert "all URLs that are left wait in partitions whose files are nowhere left" in said
        status = first.status()
        assert (status["partitions"]["missing"], status["finished"]) == (len(lost), False)
        assert status["urls"]["missing"] > 0
        damaged = first.frontier("verify", check=False)
        assert damaged.returncode == 1
        assert all(f"{name}: its files are nowhere left" in damaged.stdout for name in lost), damaged.stdout
        assert not list(state.glob(f"{lost[0]}*"))
        for name in lost:
            (away / name).rename(state / name)
        first.start()
        second.start()
        assert [node.wait(300) for node in (first, second)] == [0, 0]
        assert len(web.exchanges()) > before
        assert missing(first) == 0
    assert_complete(web.report(delay_ms=DELAY_MS), may_repeat)


@pytest.fixture
def own_disks(tmp_path: Path, web: SimulatedWeb, server: PrivateRedis) -> Iterator[tuple[Crawl, Crawl]]:
    """Two nodes with a store and a state directory each; the first one was killed, and the store has lost its half."""
    settings = {**SETTINGS, "BIGCRAWL_REDIS_URL": server.url, "BIGCRAWL_STORE_URL": f"file://{tmp_path / 'store'}"}
    with (
        Crawl(tmp_path / "first", web.seeds, {**settings, "BIGCRAWL_NODE": "one"}) as first,
        Crawl(tmp_path / "second", web.seeds, {**settings, "BIGCRAWL_NODE": "two"}) as second,
    ):
        yield first, second


def kill_and_lose(first: Crawl, store: Path) -> tuple[Counter[str], int]:
    """Kill a node and delete in the store what it owned. Return what it may have had in process, and how many."""
    may_repeat = Counter(first.taken())
    lost = partitions_of(first)
    first.kill()
    for name in names_of(lost):
        shutil.rmtree(store / first.name / name)
    may_repeat.update(first.taken())
    return may_repeat, len(lost)


def test_partitions_that_the_store_has_lost_wait_for_the_node_that_has_them(
    tmp_path: Path, web: SimulatedWeb, own_disks: tuple[Crawl, Crawl]
) -> None:
    """The survivor goes on with its own. The killed node comes back with its disk, and nothing is lost."""
    first, second = own_disks
    start_both(first, second, web)
    may_repeat, lost = kill_and_lose(first, tmp_path / "store")
    wait_until(lambda: missing(second) == lost, "the survivor sets apart what it cannot find")
    assert f"and the store file://{tmp_path}/store no point" in second.log.read_text()
    first.start()
    assert [node.wait(300) for node in own_disks] == [0, 0]
    assert missing(second) == 0
    assert_complete(web.report(delay_ms=DELAY_MS), may_repeat)


def test_crawl_that_accepts_refetches_goes_on_without_the_files_and_counts_them(
    tmp_path: Path, web: SimulatedWeb, own_disks: tuple[Crawl, Crawl]
) -> None:
    """The disk is lost too. The survivor begins its half anew and ends by itself; no more is repeated than it says."""
    first, second = own_disks
    second.settings["BIGCRAWL_LOST_PARTITIONS"] = "refetch"
    start_both(first, second, web)
    may_repeat, lost = kill_and_lose(first, tmp_path / "store")
    shutil.rmtree(first.directory / "state")
    assert second.wait(300) == 0
    status = second.status()
    assert (status["partitions"]["missing"], status["partitions"]["begun_anew"]) == (0, lost)
    assert status["urls"]["may_refetch"] > 0
    report = web.report(delay_ms=DELAY_MS)
    assert report.kinds <= {"refetched", "over_retried", "missing"}, str(report)
    again = sum(each.times - 1 for each in report.refetched)
    assert again <= status["urls"]["may_refetch"] + may_repeat.total()
