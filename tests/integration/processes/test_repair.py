"""`scrapy frontier repair`, on partitions whose files are really damaged: of a live crawl and of a stopped one."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.support.crawling.crawls import Crawl, SimulatedWeb
from tests.support.crawling.verdicts import assert_complete
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.support.running.processes import wait_until

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS = {
    "BIGCRAWL_HOST_DELAY": 0.2,
    "BIGCRAWL_PARTITIONS": 4,
    "BIGCRAWL_DURABLE_SECONDS": 600,
    "BIGCRAWL_STEP_SECONDS": 1,
    "BIGCRAWL_LEASE_SECONDS": 10,
}


def manifest_of(crawl: Crawl, partition: int) -> Path:
    directory = crawl.directory / "state" / "test" / f"p{partition:04d}"
    return max(directory.glob("e*/MANIFEST"), key=lambda path: int(path.parent.name[1:]))


def damage(manifest: Path) -> bytes:
    """Flip a bit behind the first record; return the damaged bytes."""
    sound = manifest.read_bytes()
    at = len(sound) * 3 // 4
    manifest.write_bytes(sound[:at] + bytes([sound[at] ^ 1]) + sound[at + 1 :])
    return manifest.read_bytes()


@pytest.mark.long("waits for a lease to end; each damage and its end: tests/unit/scheduler")
def test_damaged_partition_is_repaired_while_the_crawl_runs(tmp_path: Path) -> None:
    """Nothing is changed without a yes, nor while a partition has an owner; then it goes on and nothing is lost."""
    with (
        PrivateRedis() as server,
        SimulatedWeb(tmp_path / "web", hosts=8, pages=30) as web,
        Crawl(tmp_path / "crawl", web.seeds, {**SETTINGS, "BIGCRAWL_REDIS_URL": server.url}) as crawl,
    ):
        crawl.start()
        wait_until(lambda: len(web.exchanges()) > 60, "the crawl is under way")
        may_repeat = Counter(crawl.taken())
        crawl.kill()
        may_repeat.update(crawl.taken())
        bad = max(range(4), key=lambda number: manifest_of(crawl, number).stat().st_size)
        manifest = manifest_of(crawl, bad)
        damaged = damage(manifest)
        crawl.start()
        wait_until(lambda: f"partition {bad} is set apart" in crawl.log.read_text(), "the node has met it")
        wait_until(lambda: crawl.status()["partitions"]["damaged"] == 1, "all know of it")
        refused = crawl.frontier("repair", check=False)
        assert refused.returncode == 1
        assert f"{manifest}: damaged at byte" in refused.stderr
        assert "read again from its inbox, nothing is lost" in refused.stderr
        assert refused.stderr.endswith("bigcrawl: nothing was repaired: answer y, or give --yes\n")
        assert manifest.read_bytes() == damaged
        done = crawl.asked("repair", "--yes")
        assert done["repaired"] == [bad]
        assert [(plan["partition"], plan["lost"]) for plan in done["plans"]] == [(bad, 0)]
        wait_until(lambda: f"partition {bad} is sound again" in crawl.log.read_text(), "a node takes it up")
        assert crawl.wait(300) == 0
        assert "every file is sound" in crawl.frontier("repair").stdout
        report = web.report(delay_ms=200)
    assert_complete(report, may_repeat)


@pytest.mark.long("waits for a lease to end; each damage and its end: tests/unit/scheduler")
def test_loss_is_told_before_and_is_not_larger(tmp_path: Path) -> None:
    """Of a stopped crawl: what neither files nor Redis have is counted; a partition without a sound state stays."""
    lease = {"BIGCRAWL_LEASE_SECONDS": 20}  # longer than a command takes
    with (
        PrivateRedis() as server,
        SimulatedWeb(tmp_path / "web", hosts=8, pages=30) as web,
        Crawl(tmp_path / "crawl", web.seeds, {**SETTINGS, **lease, "BIGCRAWL_REDIS_URL": server.url}) as crawl,
        crawl.redis() as client,
    ):
        crawl.start()
        wait_until(lambda: len(web.exchanges()) > 60, "the crawl is under way")
        crawl.kill()
        bad = max(range(4), key=lambda number: manifest_of(crawl, number).stat().st_size)
        damage(manifest_of(crawl, bad))
        owned = crawl.result("repair", "--yes")
        assert owned.status == 1, "its node may live, for all that is known"
        assert "drain that node, or wait until it meets the damage" in owned.text
        wait_until(lambda: crawl.status()["partitions"]["owned"] == 0, "the lease is over")
        client.xtrim(f"bigcrawl:{{test:p{bad}}}:inbox", maxlen=0)
        told = crawl.frontier("repair", check=False).stderr
        done = crawl.asked("repair", "--yes")
        [plan] = done["plans"]
        assert plan["lost"] > 0
        assert f"up to {plan['lost']:,} URLs are lost" in told
        assert crawl.run() == 0
        fetched = {f"http://{each.host}:{web.saved.port}{each.target}" for each in web.exchanges()}
        assert len(set(web.expected()) - fetched) <= plan["lost"]

        manifest = manifest_of(crawl, bad)
        manifest.write_bytes(b"nothing of a manifest" * 10)
        said = crawl.frontier("repair", "--yes", check=False)
        assert said.returncode == 1
        assert f"partition {bad} cannot be repaired: no earlier state is sound" in said.stdout
