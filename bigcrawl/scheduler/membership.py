"""Which nodes live, which partitions this one should own, and who is provably dead.

A node holds a lock file in the crawl's directory for as long as it lives; its *token* names machine boot and
node. Another node of the same boot that finds the lock free knows the death for certain and need not wait
for the lease. Source: UbiCrawler §2, §4.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bigcrawl.exceptions import ConfigError
from bigcrawl.redisdb import scripts
from bigcrawl.redisdb.keys import CrawlKeys
from bigcrawl.scheduler.assignment import assign

if TYPE_CHECKING:
    from bigcrawl.config import Config
    from bigcrawl.redisdb.client import RedisClient

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Membership:
    """This node among the others of its crawl."""

    def __init__(self, config: Config, node: str) -> None:
        self._keys = CrawlKeys(config.crawl.name)
        self._partitions = config.crawl.partitions
        self._lease_ms = config.frontier.lease_ms
        self._directory = config.crawl.crawl_dir / "nodes"
        self._lock_fd: int | None = None
        self.node = node
        self.token = f"{_boot_id()}:{node}"
        self.reports: dict[str, dict[str, Any]] = {}

    def __repr__(self) -> str:
        return f"<Membership {self.node} among {sorted(self.reports)}>"

    def lock(self) -> None:
        """Take the lock file that proves this node's life.

        Raises:
            ConfigError: the state directory cannot be written.
        """
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            self._lock_fd = os.open(self._path(self.node), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
            fcntl.flock(self._lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ConfigError(f"cannot write the state directory: {error}; check BIGCRAWL_STATE_DIR") from error

    def unlock(self, *, left: bool = True) -> None:
        """Give the lock file up; the node is no more.

        Args:
            left: nothing in Redis names this node any more. Else the file stays, unlocked: it is what proves
                the death to the next node, which then need not wait for the lease.
        """
        if self._lock_fd is not None:
            if left:
                with contextlib.suppress(OSError):
                    self._path(self.node).unlink()
            os.close(self._lock_fd)
            self._lock_fd = None

    async def beat(self, client: RedisClient, report: dict[str, Any]) -> None:
        """Say that this node lives; learn which others do, the provably dead ones left out."""
        call = scripts.beat_node(self._keys, self.node, json.dumps(report), self._lease_ms)
        [texts] = await client.run([call])
        reports = {node: json.loads(text or "{}") for node, text in texts.items()}
        dead = [node for node, told in reports.items() if node != self.node and self.is_dead(told.get("token", ""))]
        for node in dead:
            del reports[node]
        if dead:
            await client.run([scripts.beat_node(self._keys, node, "", self._lease_ms, leave=True) for node in dead])
        self.reports = reports

    async def leave(self, client: RedisClient) -> None:
        """Tell the others that this node is going."""
        await client.run([scripts.beat_node(self._keys, self.node, "", self._lease_ms, leave=True)])

    def wanted(self) -> set[int]:
        """The partitions that this node should own among those that live."""
        capacities = {node: float(told.get("capacity", 1.0)) for node, told in self.reports.items()}
        capacities.setdefault(self.node, 1.0)
        owners = assign(self._partitions, capacities)
        return {partition for partition, owner in enumerate(owners) if owner == self.node}

    def is_dead(self, token: str) -> bool:
        """Whether the node of this token is provably dead: same boot, same directory, its lock free."""
        boot, _, node = token.partition(":")
        if not boot or not node or node == self.node or boot != _boot_id():
            return False
        try:
            fd = os.open(self._path(node), os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        finally:
            os.close(fd)
        return True

    def _path(self, node: str) -> Path:
        return self._directory / f"{node}.lock"


def _boot_id() -> str:
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return ""
