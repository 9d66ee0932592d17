"""What faults happen to: a crawl of three machines that share a store, and that visits its pages again."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

from tests.support.faults.machine import STATE, STORE, WARC, Machine, MachineCrawl, Network
from tests.support.faults.world import NAME, STORE_SETTINGS, Node, World
from tests.support.running.processes import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.crawling.crawls import SimulatedWeb
    from tests.support.faults.link import FaultyLink
    from tests.support.servers.s3_server import FaultyS3

VISITS, EVERY_S = 3, 60
_SETTINGS: dict[str, Any] = {
    **STORE_SETTINGS,
    "BIGCRAWL_CONTENT_SEEN": "near",
    "BIGCRAWL_REVISIT_SECONDS_MIN": 1,
    "BIGCRAWL_WARC_INDEX": "cdxj,parquet",
}


class MachinesWorld(World):
    """Each node has a machine with disks of its own; the store is mounted there, or answers as S3 does.

    Args:
        bucket: the URL of the bucket in `s3`.
    """

    visits = VISITS
    is_indexed = True

    def __init__(
        self, directory: Path, web: SimulatedWeb, seed: int, s3: FaultyS3 | None = None, bucket: str = ""
    ) -> None:
        self.s3 = s3
        self._bucket = bucket
        self._root = directory / "machine"
        self._collected: Path | None = None
        super().__init__(directory, web, seed, own_disks=True)

    def node_of(self, name: str, link: FaultyLink) -> Node:
        """A node, with its machine."""
        if self.network is None:
            self.network = self.enter(Network(self.directory / "network"))
        machine = self.enter(Machine(self._root, self.network))
        store = self._bucket or (self._root / STORE).as_uri()
        settings = {
            **self.settings_of(name, link, self._root / STATE, self._root / WARC),
            **_SETTINGS,
            "BIGCRAWL_STORE_URL": f"{store}/points",
            "BIGCRAWL_WARC_STORE_URL": f"{store}/pages",
        }
        arguments = {"policy": "periodic", "every": str(EVERY_S), "visits": str(VISITS)}
        crawl = MachineCrawl(
            self.directory / name, self.web.seeds, settings, NAME, arguments, spider="recrawl", machine=machine
        )
        return Node(name, link, crawl, machine)

    def pages_directory(self) -> Path:
        """All WARC files with their indexes, as an operator has them who looks after the machines at the end."""
        if self._collected is None:
            for node in self.nodes:
                self._look_after_pages(node)
            self._collected = self.directory / "pages"
            self._collected.mkdir()
            for name, data in self._stored_pages():
                if not name.startswith("."):
                    (self._collected / name).write_bytes(data)
        return self._collected

    def exported(self) -> list[dict[str, Any]]:
        """What is known of each URL when the crawl is over."""
        file = self.directory / "crawl.export"
        done = _crawl(self.nodes[0]).command_there("export", str(file))
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in file.read_text().splitlines()]

    def _look_after_pages(self, node: Node) -> None:
        assert node.machine is not None
        disk = node.machine.disk(WARC)

        def left() -> list[str]:
            return sorted(path.name for path in disk.glob("[!.]*"))

        try:
            wait_until(lambda: not left(), "the last process has moved the last file", timeout_s=60)
        except TimeoutError:
            self.say(f"{node.name} has {left()}")
            for words in (("repair",), ("index", "--parquet"), ("upload",)):
                done = _crawl(node).command_there("warc", *words)
                self.say(f"{node.name}: warc {words[0]}: {done.returncode} {done.stdout}{done.stderr}")
        if left():
            self.problems.append(f"{node.name} has files that are in no store: {left()}")
            shutil.copytree(disk, self.directory / f"left-{node.name}")

    def _stored_pages(self) -> list[tuple[str, bytes]]:
        if self.s3 is not None:
            from tests.unit.page_store.test_uploads import in_store

            return sorted(in_store(f"{self._bucket}/pages").items())
        assert self.network is not None
        return [(path.name, path.read_bytes()) for path in (self.network.disk(STORE) / "pages").iterdir()]


def _crawl(node: Node) -> MachineCrawl:
    assert isinstance(node.crawl, MachineCrawl)
    return node.crawl
