"""The settings files that ship, each in a project of one line and a crawl: their values are in force."""

from __future__ import annotations

import os
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.config import BY_NAME
from tests.support.crawling.crawls import Crawl, SimulatedWeb
from tests.support.running.processes import no_strays_below, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

UNSET = dict.fromkeys(("BIGCRAWL_SERVER_DELAY", "BIGCRAWL_PARTITIONS"))


@pytest.fixture
def web(tmp_path: Path) -> Iterator[SimulatedWeb]:
    with no_strays_below(tmp_path), SimulatedWeb(tmp_path / "web", hosts=6, pages=6) as served:
        yield served


def crawl_by(profile: str, directory: Path, seeds: list[str]) -> Crawl:
    """A crawl of a project whose settings are bigcrawl's own and the line of the documentation."""
    directory.mkdir()
    lines = f"from bigcrawl.settings import *\nfrom bigcrawl.profiles.{profile} import *\n"
    (directory / f"project_{profile}.py").write_text(lines)
    path = os.pathsep.join([str(directory), os.environ.get("PYTHONPATH", "")])
    environment = {"SCRAPY_SETTINGS_MODULE": f"project_{profile}", "PYTHONPATH": path}
    return Crawl(directory / "crawl", seeds, dict(UNSET), environment=environment, cold=True)


def values_of(profile: str) -> dict[str, Any]:
    """The values that the file changes."""
    found = vars(import_module(f"bigcrawl.profiles.{profile}"))
    changed = {name: value for name, value in found.items() if name.isupper()}
    assert {name for name, value in changed.items() if BY_NAME[name].default == value} <= {"BIGCRAWL_HOST_CONNECTIONS"}
    return {name: value for name, value in changed.items() if BY_NAME[name].default != value}


def in_force(crawl: Crawl) -> dict[str, Any]:
    """The settings that the crawl's node has published."""
    [node] = crawl.asked("nodes")["nodes"]
    return dict(node["settings"])


def test_gentle_crawl_asks_each_host_once_in_thirty_seconds(tmp_path: Path, web: SimulatedWeb) -> None:
    """Its robots.txt, and then nothing for half a minute."""
    with crawl_by("gentle", tmp_path / "project", web.seeds) as crawl:
        crawl.start()
        wait_until(lambda: bool(web.exchanges()), "the crawl is under way", timeout_s=300)
        hosts = {one.split("/")[2] for one in web.seeds}
        wait_until(lambda: crawl.status()["awaited_host"] is not None, "all hosts rest", timeout_s=300)
        awaited = crawl.status()["awaited_host"]
        found = in_force(crawl)
        log = web.exchanges()
        crawl.terminate()
        assert crawl.wait(300) == 0
    assert {name: found[name] for name in values_of("gentle")} == values_of("gentle")
    assert 1 < awaited["due_in_s"] <= 30
    asked = sorted((one.host, one.start_ms) for one in log)
    assert len({host for host, _ in asked}) <= len(hosts)
    gaps = [later - at for (host, at), (other, later) in pairwise(asked) if host == other]
    assert all(gap >= 30_000 for gap in gaps)


def test_intranet_is_crawled_and_then_kept_fresh(tmp_path: Path, web: SimulatedWeb) -> None:
    """All pages of private addresses, and each waits for its next visit."""
    pages = {url for url, status in web.expected().items() if status == 200}
    with crawl_by("intranet", tmp_path / "project", web.seeds) as crawl:
        crawl.settings["BIGCRAWL_ALLOW_PRIVATE_ADDRESSES"] = None
        crawl.start()
        wait_until(lambda: bool(web.exchanges()), "the crawl is under way", timeout_s=300)
        wait_until(
            lambda: (status := crawl.status())["revisits"]["waiting"] == status["urls"]["disk"] == len(pages),
            "each page was visited",
            timeout_s=300,
        )
        visit = crawl.asked("explain", web.seeds[0])["revisit"]
        found = in_force(crawl)
        crawl.terminate()
        assert crawl.wait(300) == 0
    assert {name: found[name] for name in values_of("intranet")} == values_of("intranet")
    assert visit["policy"] == "freshness"
    assert 0 < visit["due_in_s"] <= 14_400
