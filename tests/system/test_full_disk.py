"""A disk that is really full (a small tmpfs), or unmounted: the crawl waits, says so, and goes on when it can."""

from __future__ import annotations

import contextlib
import itertools
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.crawling.crawls import Crawl, SimulatedWeb
from tests.support.crawling.verdicts import assert_complete, pause
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.support.running.processes import no_strays_below, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.system, pytest.mark.timeout(900)]


@contextlib.contextmanager
def small_disk(path: Path, size: str) -> Iterator[None]:
    path.mkdir(parents=True)
    options = f"size={size},nr_inodes=2000"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "bigcrawl-test", str(path)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


def grow(path: Path, size: str) -> None:
    subprocess.run(["mount", "-o", f"remount,size={size}", str(path)], check=True)


def fill(path: Path, *, to_the_last_file: bool) -> None:
    """Leave no room for a byte, or not even for an empty file."""
    with contextlib.suppress(OSError), (path / "filler").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(1 << 12))
    with contextlib.suppress(OSError):
        for number in itertools.count() if to_the_last_file else ():
            (path / f"filler-{number}").touch()


def make_room(path: Path) -> None:
    for filler in path.glob("filler*"):
        filler.unlink()


def rests(web: SimulatedWeb) -> bool:
    """Whether nothing is asked for while a crawl that went on would ask for dozens of pages."""
    before = len(web.exchanges())
    pause(2)
    return len(web.exchanges()) == before


@pytest.mark.parametrize(("full", "size"), [("warc", "1m"), ("state", "80k")])
def test_full_disk_pauses_the_crawl_and_loses_nothing(tmp_path: Path, full: str, size: str) -> None:
    """No page is fetched in vain while the disk is full; after room is made the crawl ends complete, files whole."""
    settings = {"BIGCRAWL_HOST_DELAY": 0.1, "BIGCRAWL_PARTITIONS": 16}
    where = tmp_path / "crawl" / full
    with (
        no_strays_below(tmp_path),
        PrivateRedis() as server,
        small_disk(where, size),
        SimulatedWeb(tmp_path / "web", hosts=16, pages=30) as web,
        Crawl(tmp_path / "crawl", web.seeds, {**settings, "BIGCRAWL_REDIS_URL": server.url}) as crawl,
    ):
        crawl.start()
        wait_until(lambda: b"No space left" in crawl.log.read_bytes(), "the log says that the disk is full", 300)
        if full == "warc":
            wait_until(lambda: rests(web), "what was under way has come", 300)
            assert rests(web), "nothing is fetched that cannot be stored"
        pause(5)
        assert crawl.process is not None
        assert crawl.process.poll() is None, "the crawl must wait for room"
        grow(where, "200m")
        assert crawl.wait(300) == 0
        assert b"Traceback" not in crawl.log.read_bytes()
        assert_complete(web.report(delay_ms=100))
        files = sorted((tmp_path / "crawl" / "warc").glob("*.warc.gz"))
        subprocess.run([sys.executable, "-m", "warcio.cli", "check", *map(str, files)], check=True)


@pytest.mark.parametrize(
    ("has_begun", "server", "has_files"),
    [(False, "own", True), (True, "own", True), (True, "own", False), (False, "embedded", False)],
)
def test_node_waits_for_room_when_it_joins(tmp_path: Path, has_begun: bool, server: str, has_files: bool) -> None:
    """Also for the files of its embedded server, and in a crawl that exists; it says where there is no room."""
    where = tmp_path / "crawl" / "state"
    with (
        no_strays_below(tmp_path),
        PrivateRedis() as redis,
        small_disk(where, "8m"),
        SimulatedWeb(tmp_path / "web", hosts=8, pages=10) as web,
        Crawl(tmp_path / "crawl", web.seeds, {"BIGCRAWL_HOST_DELAY": 0.1, "BIGCRAWL_PARTITIONS": 8}) as crawl,
    ):
        if server == "own":
            crawl.settings["BIGCRAWL_REDIS_URL"] = redis.url
        if has_begun:
            crawl.start()
            wait_until(lambda: len(web.exchanges()) > 20, "the crawl is under way", 300)
            crawl.terminate()
            assert crawl.wait(300) == 0
        fill(where, to_the_last_file=not has_files)
        process = crawl.start()
        wait_until(lambda: b"cannot start yet" in crawl.log.read_bytes(), "it waits", 300)
        line = next(line for line in crawl.log.read_text().splitlines() if "cannot start yet" in line)
        assert str(where) in line
        assert "No space left" in line
        assert "make room there" in line
        assert process.poll() is None
        make_room(where)
        assert not list(where.rglob("*.tmp")), "each try cleans up"
        assert crawl.wait(300) == 0
        assert b"Traceback" not in crawl.log.read_bytes()
        assert_complete(web.report(delay_ms=100))


def mount(source: Path, target: Path) -> None:
    subprocess.run(["mount", "--bind", str(source), str(target)], check=True)


def unmount(target: Path) -> None:
    subprocess.run(["umount", "--lazy", str(target)], check=False)  # a test that fails has unmounted it already


@pytest.mark.parametrize(
    ("away", "said"),
    [
        ("store", [b"is not the store in which the crawl was begun"]),
        ("state", [b"No such file", b"is not the directory that this crawl has"]),  # by a file, or the look for a mark
        ("warc", [b"closed the file"]),
    ],
)
def test_unmounted_directory_is_waited_for_and_nothing_is_made_below_it(
    tmp_path: Path, away: str, said: list[bytes]
) -> None:
    """It is mounted again, and no page is lost, nor asked for again."""
    where, disk = tmp_path / "crawl" / away, tmp_path / "disk"
    where.mkdir(parents=True)
    disk.mkdir()
    with (
        no_strays_below(tmp_path),
        PrivateRedis() as server,
        SimulatedWeb(tmp_path / "web", hosts=16, pages=30) as web,
        contextlib.ExitStack() as mounts,
    ):
        settings = {
            "BIGCRAWL_HOST_DELAY": 0.1,
            "BIGCRAWL_PARTITIONS": 16,
            "BIGCRAWL_REDIS_URL": server.url,
            "BIGCRAWL_WARC_SYNC_SECONDS": 1,
            "BIGCRAWL_STORE_SECONDS": 1,
            "BIGCRAWL_STORE_URL": f"file://{tmp_path}/crawl/store" if away == "store" else "",
        }
        mount(disk, where)
        mounts.callback(unmount, where)
        with Crawl(tmp_path / "crawl", web.seeds, settings) as crawl:
            crawl.start()
            wait_until(lambda: len(web.exchanges()) > 40, "the crawl is under way", 300)
            unmount(where)
            wait_until(lambda: any(text in crawl.log.read_bytes() for text in said), "the log says so", 300)
            pause(5)  # in which it tries again
            assert not list(where.iterdir())
            mount(disk, where)
            assert crawl.wait(300) == 0
        assert_complete(web.report(delay_ms=100))
    assert not list(where.iterdir()), "nothing was made below the mount point"
