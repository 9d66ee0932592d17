"""Capacity from the machine: its disk, its link and its speed."""

from __future__ import annotations

import asyncio
import shutil
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from bigcrawl.config import read_config
from bigcrawl.exceptions import ConfigError
from bigcrawl.links import extract_links
from bigcrawl.scheduler.crawl.membership import Membership
from bigcrawl.scheduler.crawl.node_resources import AGAIN_MS, LEAST, NodeResources, free_bytes, pages_per_s

if TYPE_CHECKING:
    from pathlib import Path

    from bigcrawl.config import Config

FREE = {"free": 0.0}


@pytest.fixture(autouse=True)
def disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk with as many free bytes as FREE says."""
    FREE["free"] = 250e9
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(**FREE))


def config_from(source: str, directory: Path, **more: object) -> Config:
    state = {"BIGCRAWL_STATE_DIR": str(directory / "state"), "BIGCRAWL_WARC_DIR": str(directory / "warc")}
    return read_config({**state, "BIGCRAWL_CAPACITY_FROM": source, **more})


def measured_later(resources: NodeResources, *free: float) -> list[float]:
    """The values after each of these measurements."""

    async def measure() -> list[float]:
        found, now_ms = [], 1
        resources.refresh(now_ms)
        for FREE["free"] in free:
            now_ms += AGAIN_MS
            resources.refresh(now_ms)
            if resources._pending is not None:
                await asyncio.wait([resources._pending])
            resources.refresh(now_ms)
            found.append(resources.value)
        return found

    return asyncio.run(measure())


def test_free_disk_is_measured_again_and_small_changes_move_nothing(tmp_path: Path) -> None:
    """A tenth more or less is no change; an empty disk still counts as something."""
    resources = NodeResources.of_config(config_from("disk", tmp_path).crawl)
    resources.begin()
    assert resources.value == 2.5
    assert measured_later(resources, 230e9, 220e9, 240e9, 0) == [2.5, 2.2, 2.2, LEAST]


def test_disk_that_cannot_be_asked_leaves_the_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the next measurement counts again."""
    resources = NodeResources.of_config(config_from("disk", tmp_path).crawl)
    resources.begin()

    def fail(_: object) -> None:
        raise OSError(5, "no answer")

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "disk_usage", fail)
        assert measured_later(resources, 100e9) == [2.5]
    resources._measured_ms = None
    assert measured_later(resources, 100e9) == [1.0]


def test_directory_that_is_yet_to_be_made_is_on_its_parents_disk(tmp_path: Path) -> None:
    """A new crawl has none."""
    assert free_bytes(tmp_path / "a" / "b") == 250e9


def link_of(root: Path, speed: str) -> Path:
    """The files of a machine whose default route goes over an interface of this speed."""
    (root / "proc/net").mkdir(parents=True)
    (root / "proc/net/route").write_text("Iface\tDestination\nlo\t0000007F\neth1\t00000000\n")
    (root / "sys/class/net/eth1").mkdir(parents=True)
    (root / "sys/class/net/eth1/speed").write_text(speed)
    return root


def test_bandwidth_is_that_of_the_default_route(tmp_path: Path) -> None:
    """As the system says it, in Gbit/s."""
    resources = NodeResources.of_config(config_from("bandwidth", tmp_path).crawl, link_of(tmp_path / "root", "2500\n"))
    resources.begin()
    assert resources.value == 2.5


@pytest.mark.parametrize("speed", ["-1\n", "", "unknown\n"])
def test_unknown_bandwidth_ends_the_start(tmp_path: Path, speed: str) -> None:
    """With the setting that helps."""
    resources = NodeResources.of_config(config_from("bandwidth", tmp_path).crawl, link_of(tmp_path / "root", speed))
    with pytest.raises(ConfigError, match='set it to "setting" on all nodes, and BIGCRAWL_CAPACITY to the Gbit/s'):
        resources.begin()


def test_speed_is_that_of_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process in which reading a page takes ten times as long measures less."""
    from bigcrawl.scheduler.crawl import node_resources

    fast = pages_per_s()
    monkeypatch.setattr(node_resources, "extract_links", lambda page: [extract_links(page) for _ in range(10)][-1])
    assert 0 < pages_per_s() < fast


def test_report_has_what_was_measured_times_what_was_set(tmp_path: Path) -> None:
    """So one node may be lowered by hand."""
    membership = Membership(config_from("disk", tmp_path, BIGCRAWL_CAPACITY=0.5), "node")
    membership.lock()
    try:
        assert membership._place(())["capacity"] == 1.25
    finally:
        membership.unlock()
